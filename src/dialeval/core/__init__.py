"""What a measurement is: errors, columns, batches, metrics as folds, exact sums, signatures, runs and their files."""
