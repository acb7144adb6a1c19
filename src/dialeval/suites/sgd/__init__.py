"""Schema-guided dialogues: state tracking as evaluate.py of schema_guided_dst evaluates it."""
