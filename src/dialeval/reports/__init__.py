"""What people read: tables for the terminal, papers and other programs, and one offline HTML page.

Nothing is measured here. Numbers are rounded here and nowhere else.
"""
