"""`python -m papers`."""

from papers.commands import main

if __name__ == "__main__":
    main()
