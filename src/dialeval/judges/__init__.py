"""Judges that were fitted to human ratings, and their training; the only folder that imports PyTorch."""
