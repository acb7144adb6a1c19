"""Files of LSDSCC: several hypotheses per query, references in groups."""
