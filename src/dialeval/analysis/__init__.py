"""What results mean: how sure a figure is, whether a difference is one, and whether people would agree."""
