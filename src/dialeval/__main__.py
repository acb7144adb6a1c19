"""Run the command line: `python -m dialeval`."""

import sys

if __name__ == "__main__":
    if not getattr(sys.flags, "safe_path", False):
        del sys.path[0]  # the working folder, which `python -m` puts first: no module of it is imported

    from dialeval.cli.main import main

    main()
