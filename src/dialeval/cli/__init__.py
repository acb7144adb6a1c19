"""The command line: parse, call a plain function, print. Nothing is computed here."""
