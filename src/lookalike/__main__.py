"""`python -m lookalike` runs the command line."""

from lookalike.cli import main

if __name__ == "__main__":
    main()
