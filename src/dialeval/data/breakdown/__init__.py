"""Files of the dialogue breakdown detection challenge (DBDC)."""
