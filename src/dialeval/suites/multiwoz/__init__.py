"""Task dialogues by the rules of the MultiWOZ evaluation: Inform, Success, BLEU, richness, state tracking."""
