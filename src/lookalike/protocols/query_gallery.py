"""Some images are queries, others the gallery: In-shop clothes, and any data with a column of roles [math F.11, G].

Training and validation are as in class_disjoint; a query is never compared with other queries.
"""

from lookalike.data import Dataset
from lookalike.errors import check
from lookalike.protocols import class_disjoint
from lookalike.protocols.class_disjoint import Parts


def check_dataset(dataset: Dataset) -> None:
    check(
        dataset.roles is not None,
        f"{dataset.name} does not say which images are queries and which the gallery: add a column of roles, or set "
        "protocol.name=class_disjoint",
    )


def parts(dataset: Dataset, test: float, validation: float, seed: int = 0) -> Parts:
    """Parts whose test images are either queries or gallery."""
    check_dataset(dataset)
    divided = class_disjoint.parts(dataset, test, validation, seed)
    assert divided.test.roles is not None
    sides = {name: divided.test.where(role=name) for name in ("query", "gallery")}
    for name, side in sides.items():
        check(len(side) > 0, f"{dataset.name}: no test image has the role {name}")
    both = (sides["query"].label_sizes() > 0) & (sides["gallery"].label_sizes() > 0)
    check(
        bool(both.any()),
        f"{dataset.name}: no class has both queries and gallery images, so no query has anything to find",
    )
    return divided
