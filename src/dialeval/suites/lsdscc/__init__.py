"""LSDSCC: MaxBLEU, MDS and PDS of several hypotheses per query against groups of references."""
