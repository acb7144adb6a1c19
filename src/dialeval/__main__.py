"""Run the command line: `python -m dialeval`."""

from dialeval.cli.main import main

if __name__ == "__main__":
    main()
