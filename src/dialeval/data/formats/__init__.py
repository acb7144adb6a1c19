"""What a file holds, by format: bytes, lines, JSON, CSV, Parquet, Arrow."""
