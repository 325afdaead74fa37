"""What a row begins with: the figures of a head that has learned nothing, of the same bed, dimension and geometry."""

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
    """The start of every row of a study; empty where no untrained head is kept, as for networks from scratch.

    >>> starts("cub_top_k")["Angular"]
    Start(study='cub_untrained', row='none, 128')
    >>> starts("omniglot_ms")
    {}
    """
    bed = BEDS.get(study.partition("_")[0])
    files = [planned.file for planned in STUDIES if planned.name == study]
    if bed is None or not files:
        return {}
    recipes = {cell.row: cell.recipe for cell in read(files[0]).cells}
    return {
        row: Start(bed, f"{recipe.evaluation.geometry}, {recipe.model.architecture.dim}")
        for row, recipe in recipes.items()
    }
