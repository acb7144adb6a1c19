"""Dialogue breakdown detection: figures of the challenge (DBDC), floors below them and a ceiling above."""
