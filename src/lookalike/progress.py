"""How a long function says how far it has got [architecture progress]."""

from collections.abc import Callable

Progress = Callable[[int, int], None]  # called with what is done, and of how many
Stage = Callable[[str], Progress | None]  # gives the progress of a part of the work, by its name
