"""The command line as ``python -m minga``, for environments whose scripts are not on the path."""

from minga.cli.main import main

if __name__ == "__main__":
    main()
