"""From parsed records and tables to rows: the responses of systems, with references, contexts and ratings."""
