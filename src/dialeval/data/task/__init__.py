"""Files of task dialogues: predictions, goals, states and references."""
