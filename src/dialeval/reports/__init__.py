"""Results as text, tables, files and one HTML page; `report` is taken by the function `dialeval.report`."""
