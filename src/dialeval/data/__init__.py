"""Reading responses, references and contexts from files and Python objects, and listing what is wrong with them."""

from dialeval.data.rows.checks import Summary, check, summary
from dialeval.data.rows.reading import attach, read_files, read_responses, read_texts
from dialeval.data.rows.system import Rows

__all__ = ["Rows", "Summary", "attach", "check", "read_files", "read_responses", "read_texts", "summary"]
