"""Reading responses, references and contexts from files and Python objects, and listing what is wrong with them."""

from dialeval.data.checks import Summary, check, summary
from dialeval.data.rows import Rows
from dialeval.data.sources import attach, read_files, read_responses, read_texts

__all__ = ["Rows", "Summary", "attach", "check", "read_files", "read_responses", "read_texts", "summary"]
