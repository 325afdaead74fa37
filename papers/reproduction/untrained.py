"""The figures of an untrained head of the same bed and dimension, on the sphere: what a row could have for nothing."""

from functools import cache
from typing import NamedTuple

from lookalike.sweeps import read
from papers.reproduction.planned import STUDIES

BEDS = {"cub": "cub_untrained", "cars": "cars_untrained"}


class UntrainedStart(NamedTuple):
    """A row of a study of untrained heads."""

    study: str
    row: str


@cache
def starts(study: str) -> dict[str, UntrainedStart]:
    """The untrained head for every row of a study; empty where none is kept, as for networks from scratch.

    >>> starts("cub_top_k")["Angular"]
    UntrainedStart(study='cub_untrained', row='dim 128')
    >>> starts("omniglot_ms")
    {}
    """
    bed = BEDS.get(study.partition("_")[0])
    files = [planned.file for planned in STUDIES if planned.name == study]
    if bed is None or not files:
        return {}
    return {cell.row: UntrainedStart(bed, f"dim {cell.recipe.model.architecture.dim}") for cell in read(files[0]).cells}
