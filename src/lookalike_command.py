"""The command `lookalike`: what must stand in the environment before torch is loaded, and then the verbs.

Threads of OpenMP that wait for each other go to sleep soon, and not only after burning the time that other programs on
a busy machine would use. `import lookalike` leaves that to the program that imports it.
"""

import os


def main() -> None:
    os.environ.setdefault("GOMP_SPINCOUNT", "20000")  # read once, when torch loads its OpenMP library
    from lookalike.cli import main as verbs

    verbs()
