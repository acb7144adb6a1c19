"""One system in many files: shards, the chunks that workers read, and blocks of rows."""
