"""Published evaluation suites, one folder each; they do not import each other."""
