"""Learned measures: judges that were fitted to what people said. The only place that imports PyTorch."""
