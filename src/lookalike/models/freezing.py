"""Which stages learn, and from which epoch on."""

from collections.abc import Iterable
from dataclasses import dataclass

from lookalike.errors import check, unknown


def up_to(stage: str, stages: Iterable[str]) -> tuple[str, ...]:
    """Of all `stages`, those from the first to `stage`, to be frozen.

    >>> up_to("layer1", ["stem", "layer1", "layer2"])
    ('stem', 'layer1')
    """
    names = tuple(stages)
    if stage not in names:
        raise unknown("stage", stage, names)
    return names[: names.index(stage) + 1]


@dataclass(frozen=True)
class Unfreezing:
    """Only the head learns until `epoch`; then one more stage, last first, every `every` epochs (0: all at once).

    >>> schedule = Unfreezing(epoch=1, every=2)
    >>> [schedule.frozen_at(epoch, ["stem", "layer1", "layer2"]) for epoch in (0, 1, 3, 5)]
    [('stem', 'layer1', 'layer2'), ('stem', 'layer1'), ('stem',), ()]
    """

    epoch: int | None = None  # None: everything learns from the beginning
    every: int = 0

    def __post_init__(self) -> None:
        check(self.epoch is None or self.epoch >= 0, f"unfreezing starts at epoch 0 or later, not {self.epoch}")
        check(self.every >= 0, f"unfreezing continues every 1 or more epochs (0: all at once), not {self.every}")

    def frozen_at(self, epoch: int, stages: Iterable[str]) -> tuple[str, ...]:
        """Those of `stages` that are frozen during this `epoch` (the first is 0)."""
        names = tuple(stages)
        if self.epoch is not None and epoch < self.epoch:
            return names
        learning = 1 + (epoch - self.epoch) // self.every if self.epoch is not None and self.every else len(names)
        return names[: max(len(names) - learning, 0)]
