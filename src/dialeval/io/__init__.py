"""Reading and writing: file formats, rows, chunks of large files, ratings, data packs, word vectors."""
