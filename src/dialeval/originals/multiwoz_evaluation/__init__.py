"""The package `mwzeval` under the name that its documents use."""
