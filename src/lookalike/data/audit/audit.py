"""Is this data fit to learn from? Every problem is listed, none stops the search.

What makes data unusable: no two classes with two readable images each. What makes results untrue: the same photo in two
classes (a false label) or in two splits (a leak). The rest is told so that nobody is surprised.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from lookalike.data.audit.duplicates import near_groups
from lookalike.data.audit.findings import Finding, names, of_duplicates
from lookalike.data.audit.scan import BEGINNINGS, Scan, scan
from lookalike.data.audit.suspicious_labels import suspicious_labels
from lookalike.data.dataset import Dataset, Problem
from lookalike.data.formats.folder import is_image, walk
from lookalike.data.images.source import Files
from lookalike.errors import check

UNUSABLE = ("missing", "empty", "not an image", "truncated", "damaged", "bomb")  # kinds of problems that cost an image
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Audit:
    """What an audit found; `usable` says whether a model can be trained on what is left."""

    name: str
    images: int
    readable: int
    classes: int
    usable: bool
    verdict: str
    class_sizes: dict[str, int]
    findings: list[Finding]
    duplicates: Int64[Tensor, " n"]  # groups of near duplicates, −1: none; for `class_disjoint(..., together=...)`

    def as_json(self) -> dict[str, Any]:
        told = {name: value for name, value in self.__dict__.items() if name != "duplicates"}
        return told | {"findings": [finding.__dict__ for finding in self.findings]}


def audit(
    dataset: Dataset,
    *,
    embeddings: Float[Tensor, "n d"] | None = None,
    threads: int = 2,
    progress: Progress | None = None,
) -> Audit:
    """Look at every image, and at the labels too if `embeddings` (one per image, of any model) are given."""
    if embeddings is not None:
        check(len(embeddings) == len(dataset), f"{len(embeddings)} embeddings for {len(dataset)} images: give one each")
    seen = scan(dataset, threads=threads, progress=progress)
    good = torch.from_numpy(seen.readable)
    findings = _of_files(dataset, seen) + of_duplicates(dataset, seen) + _of_classes(dataset, good)
    if embeddings is not None:
        findings.append(_of_labels(dataset, embeddings, good))
    usable, verdict = _verdict(dataset, good)
    present = [finding for finding in findings if finding.count]
    sizes = class_size_histogram(dataset.subset(good))
    counts = len(dataset), int(good.sum()), dataset.present
    return Audit(dataset.name, *counts, usable, verdict, sizes, present, near_groups(seen))


def readable(dataset: Dataset, *, threads: int = 2, progress: Progress | None = None) -> Dataset:
    """The dataset without the images that cannot be read; they are listed in its `problems`."""
    seen = scan(dataset, threads=threads, progress=progress)
    lost = tuple(problem for problem in seen.problems if problem.kind in UNUSABLE)
    return replace(dataset.subset(torch.from_numpy(seen.readable)), problems=dataset.problems + lost)


def class_size_histogram(dataset: Dataset) -> dict[str, int]:
    """How many classes have 1, 2–3, 4–7, 8–15, … images.

    >>> from lookalike.data.formats.arrays import arrays
    >>> class_size_histogram(arrays(torch.zeros(4, 2, 2, dtype=torch.uint8), ["a", "b", "b", "b"]))
    {'1': 1, '2–3': 1}
    """
    sizes = dataset.class_sizes()
    result, low = {}, 1
    while low <= int(sizes.max()):
        high = 2 * low - 1
        count = int(((sizes >= low) & (sizes <= high)).sum())
        result["1" if low == 1 else f"{low}–{high}"] = count
        low = high + 1
    return result


def _of_files(dataset: Dataset, seen: Scan) -> list[Finding]:
    problems = [*dataset.problems, *seen.problems, *_unused(dataset)]
    kinds = sorted({problem.kind for problem in problems}, key=lambda kind: (kind not in UNUSABLE, kind))
    meanings = {
        "wrong extension": "read by content; rename them so that other programs do the same",
        "no class": "in no class folder; not used",
        "closed folder": "may not be read; not used",
        "unnamed image": "an image without the ending of one; not used",
    }
    return [
        Finding(
            kind, len(rows), meanings.get(kind, "cannot be read; left out of training"), [row.__dict__ for row in rows]
        )
        for kind in kinds
        for rows in [[problem for problem in problems if problem.kind == kind]]
    ]


def _unused(dataset: Dataset) -> list[Problem]:
    """Files in the folder that are images by content but not by name."""
    if dataset.root is None or not isinstance(dataset.images, Files) or not dataset.root.is_dir():
        return []
    found = []
    for file in walk(dataset.root):
        if not is_image(file) and _begins_like_an_image(dataset.root / file):
            found.append(Problem(file, "unnamed image", "its content is an image, its name does not say so"))
    return found


def _begins_like_an_image(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            begin = file.read(8)
    except OSError:
        return False
    return any(
        begin.startswith(beginning) for beginning in BEGINNINGS if len(beginning) > 2 or beginning == b"\xff\xd8"
    )


def _of_classes(dataset: Dataset, good: Tensor) -> list[Finding]:
    sizes = torch.bincount(dataset.labels[good], minlength=dataset.classes)
    had = dataset.class_sizes()
    single = [dataset.label_names[label] for label in (sizes == 1).nonzero().flatten().tolist()]
    empty = [dataset.label_names[label] for label in ((sizes == 0) & (had > 0)).nonzero().flatten().tolist()]
    return [
        Finding("classes without a readable image", len(empty), "they drop out", empty),
        Finding("classes with one image", len(single), "no pair to learn from, and no query can find its like", single),
    ]


def _of_labels(dataset: Dataset, embeddings: Tensor, good: Tensor) -> Finding:
    rows = good.nonzero().flatten()
    doubts = suspicious_labels(embeddings[rows], dataset.labels[rows])
    items = [
        names(dataset, [int(rows[doubt.row])])[0]
        | {"looks_like": dataset.label_names[doubt.other], "share": round(doubt.share, 3)}
        for doubt in doubts
    ]
    return Finding("suspicious labels", len(items), "all their neighbours are of another class: look at them", items)


def _verdict(dataset: Dataset, good: Tensor) -> tuple[bool, str]:
    sizes = torch.bincount(dataset.labels[good], minlength=dataset.classes)
    pairs = int((sizes >= 2).sum())
    if pairs < 2:
        return (
            False,
            f"not usable: {pairs} of {dataset.present} classes have two readable images, at least 2 are needed",
        )
    return True, f"usable: {int(good.sum()):,} of {len(dataset):,} images can be read, {pairs:,} classes have pairs"
