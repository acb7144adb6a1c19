"""Language models as judges: rubrics, requests to an OpenAI-compatible endpoint, recorded answers, pairs, attacks."""
