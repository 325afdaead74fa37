"""Is this data fit to learn from? Every problem is listed, none stops the audit.

Data are unusable without two classes of two readable images each. Results are wrong if the same photo is in two classes
(a wrong label) or in two splits (a leak). The other findings explain what training will see.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor

from lookalike.data.audit.duplicates import near_groups
from lookalike.data.audit.findings import Finding, duplicate_findings, names
from lookalike.data.audit.scan import MAGIC, Scan, scan
from lookalike.data.audit.suspicious_labels import suspicious_labels
from lookalike.data.dataset import Dataset, Problem
from lookalike.data.formats.folder import is_image, walk
from lookalike.data.images.source import Files
from lookalike.errors import check
from lookalike.image_files import KINDS
from lookalike.progress import Progress

SUSPICIOUS = "suspicious labels"  # a kind of finding


@dataclass(frozen=True)
class Audit:
    """The findings of an audit; `usable`: whether a model can be trained on the readable images."""

    name: str
    images: int
    readable: int
    classes: int
    usable: bool
    verdict: str
    class_sizes: dict[str, int]
    findings: list[Finding]
    duplicates: Int64[Tensor, " n"]  # groups of near duplicates, −1: none; for `class_disjoint(..., together=...)`
    good: Bool[Tensor, " n"]  # the images that can be read

    def as_json(self) -> dict[str, Any]:
        facts = {name: value for name, value in self.__dict__.items() if name not in ("duplicates", "good")}
        return facts | {"findings": [finding.__dict__ for finding in self.findings]}


def audit(
    dataset: Dataset,
    *,
    embeddings: Float[Tensor, "n d"] | None = None,
    decoded: Dataset | None = None,
    threads: int = 2,
    progress: Progress | None = None,
) -> Audit:
    """Check every image, and with `embeddings` (one per image, of any model) the labels too.

    `decoded` is the same data set from the decoded cache: then no image is decoded again.
    """
    if embeddings is not None:
        check(
            len(embeddings) == len(dataset),
            f"{len(embeddings)} embeddings for {len(dataset)} images: give one per image",
        )
    scanned = scan(dataset, decoded=decoded, threads=threads, progress=progress)
    good = torch.from_numpy(scanned.readable)
    findings = _file_findings(dataset, scanned) + duplicate_findings(dataset, scanned) + _class_findings(dataset, good)
    if embeddings is not None:
        findings.append(_label_finding(dataset, embeddings, good))
    usable, verdict = _verdict(dataset, good)
    present = [finding for finding in findings if finding.count]
    sizes = class_size_histogram(dataset.subset(good))
    counts = len(dataset), int(good.sum()), dataset.present
    return Audit(dataset.name, *counts, usable, verdict, sizes, present, near_groups(scanned), good)


def readable(dataset: Dataset, *, threads: int = 2, progress: Progress | None = None) -> Dataset:
    """The data set without the images that cannot be read; they are listed in its `problems`."""
    scanned = scan(dataset, threads=threads, progress=progress)
    lost = tuple(problem for problem in scanned.problems if problem.kind in KINDS)
    return replace(dataset.subset(torch.from_numpy(scanned.readable)), problems=dataset.problems + lost)


def class_size_histogram(dataset: Dataset) -> dict[str, int]:
    """How many classes have 1, 2–3, 4–7, 8–15, … images.

    >>> from lookalike.data.formats.arrays import arrays
    >>> class_size_histogram(arrays(torch.zeros(4, 2, 2, dtype=torch.uint8), ["a", "b", "b", "b"]))
    {'1': 1, '2–3': 1}
    """
    sizes = dataset.label_sizes()
    result, low = {}, 1
    while low <= int(sizes.max()):
        high = 2 * low - 1
        count = int(((sizes >= low) & (sizes <= high)).sum())
        result["1" if low == 1 else f"{low}–{high}"] = count
        low = high + 1
    return result


def _file_findings(dataset: Dataset, scanned: Scan) -> list[Finding]:
    problems = [*dataset.problems, *scanned.problems, *_unnamed_images(dataset)]
    kinds = sorted({problem.kind for problem in problems}, key=lambda kind: (kind not in KINDS, kind))
    meanings = {
        "wrong extension": "read by their content; rename them so that other programs can read them too",
        "no class": "they are in no class folder and are not used",
        "closed folder": "reading them is not permitted; they are not used",
        "link": "they lead out of the folder and are not followed; linked_folder=DATA follows them",
        "photos without a label": "in no group, or nobody was sure; not used",
        "guessed labels": "not sure by classify, or doubted by audit; not used: check them, change the verdict",
        "sure labels less likely than 90%": "the index promised less; not used: check them, change the verdict",
        "labels given by classify": "sure answers of an index, learnt as they are: check some of them",
        "unnamed image": "images whose names have no image ending; they are not used",
    }
    return [
        Finding(
            kind,
            len(rows),
            meanings.get(kind, "they cannot be read and are left out of training"),
            [row.__dict__ for row in rows],
        )
        for kind in kinds
        for rows in [[problem for problem in problems if problem.kind == kind]]
    ]


def _unnamed_images(dataset: Dataset) -> list[Problem]:
    """Files in the folder that are images by content but not by name."""
    if dataset.root is None or not isinstance(dataset.images, Files) or not dataset.root.is_dir():
        return []
    problems = []
    for file in walk(dataset.root, outside=[]):
        if not is_image(file) and _begins_like_an_image(dataset.root / file):
            problems.append(Problem(file, "unnamed image", "its content is an image, its name does not say so"))
    return problems


def _begins_like_an_image(path: Path) -> bool:
    if not path.is_file():  # opening a pipe would wait for its other end
        return False
    try:
        with path.open("rb") as file:
            start = file.read(8)
    except OSError:
        return False
    return any(start.startswith(magic) for magic in MAGIC if len(magic) > 2 or magic == b"\xff\xd8")


def _class_findings(dataset: Dataset, good: Tensor) -> list[Finding]:
    if dataset.sets is not None:  # an image that shares no label is no fault
        return []
    sizes, listed = dataset.subset(good).label_sizes(), dataset.label_sizes()
    single = [dataset.label_names[label] for label in (sizes == 1).nonzero().flatten().tolist()]
    empty = [dataset.label_names[label] for label in ((sizes == 0) & (listed > 0)).nonzero().flatten().tolist()]
    return [
        Finding("classes without a readable image", len(empty), "they are not used", empty),
        Finding(
            "classes with one image",
            len(single),
            "they have no pair to learn from, and a query has nothing to find",
            single,
        ),
    ]


def _label_finding(dataset: Dataset, embeddings: Tensor, good: Tensor) -> Finding:
    rows = good.nonzero().flatten()
    items = []
    for doubt in [] if dataset.sets is not None else suspicious_labels(embeddings[rows], dataset.labels[rows]):
        (image,), nearest = names(dataset, [int(rows[doubt.row])]), dataset.images.name(int(rows[doubt.nearest]))
        suggested = {"looks_like": dataset.label_names[doubt.other], "share": round(doubt.share, 3)}
        items.append(image | suggested | {"evidence": doubt.evidence(nearest)})
    return Finding(SUSPICIOUS, len(items), "their neighbours agree on another class: check them", items)


def _verdict(dataset: Dataset, good: Tensor) -> tuple[bool, str]:
    pairs = dataset.subset(good).with_pairs
    if not good.any():
        images = dataset.images
        first = images.path(0).absolute() if isinstance(images, Files) else images.name(0)
        return False, f"not usable: none of {len(dataset):,} images can be read, for example {first}"
    if pairs < 2:
        return (
            False,
            f"not usable: {pairs} of {dataset.present} classes have two readable images, but at least 2 must",
        )
    return True, f"usable: {int(good.sum()):,} of {len(dataset):,} images can be read, {pairs:,} classes have pairs"
