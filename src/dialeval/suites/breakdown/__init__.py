"""Dialogue breakdown detection: the evaluation of the challenge (DBDC), and a judge as a detector."""
