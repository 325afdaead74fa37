"""What a row could have had for nothing: the figures of an untrained head of the same bed and dimension."""

from functools import cache
from typing import NamedTuple

from lookalike.sweeps import read
from papers.reproduction.planned import STUDIES

BEDS = {"cub": "cub_untrained", "cars": "cars_untrained"}


class Start(NamedTuple):
    """A row of a study of untrained heads."""

    study: str
    row: str


@cache
def starts(study: str) -> dict[str, Start]:
    """The untrained head for every row of a study; empty where none is kept, as for networks from scratch.

    >>> starts("cub_top_k")["Angular"]
    Start(study='cub_untrained', row='dim 128')
    >>> starts("omniglot_ms")
    {}
    """
    bed = BEDS.get(study.partition("_")[0])
    files = [planned.file for planned in STUDIES if planned.name == study]
    if bed is None or not files:
        return {}
    return {cell.row: Start(bed, f"dim {cell.recipe.model.architecture.dim}") for cell in read(files[0]).cells}
