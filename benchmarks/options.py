"""The options of a benchmark on its command line."""

import argparse
from pathlib import Path


def reader(words: str | None, **defaults: float) -> argparse.ArgumentParser:
    """Reads a number for each of the `defaults`, and --json, the file for the figures; `words` are its help."""
    parser = argparse.ArgumentParser(description=words, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in defaults.items():
        parser.add_argument(f"--{name}", type=type(default), default=default)
    parser.add_argument("--json", type=Path)
    return parser
