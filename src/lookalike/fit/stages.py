"""What happens to the images before training: they are audited, decoded, and their classes split."""

import json
from dataclasses import replace

from lookalike import data
from lookalike.data import Dataset
from lookalike.errors import check
from lookalike.files import write_text
from lookalike.label_sets import EMPTY, LabelSets
from lookalike.models import Preprocessing
from lookalike.protocols.class_disjoint import Parts
from lookalike.recipe import Recipe, build, protocol
from lookalike.runs import OpenRun


def audit(dataset: Dataset, decoded: Dataset, run: OpenRun) -> Dataset:
    """Look at every image; classes that share near duplicates are linked, so that the split keeps them together."""
    report = data.audit(dataset, decoded=decoded, progress=run.stage("looking at the images"))
    write_text(run.folder.audit, json.dumps(report.as_json(), indent=2, ensure_ascii=False))
    check(report.usable, f"{dataset.name} cannot be learnt from: {report.verdict}")
    for finding in report.findings:
        run.note(f"{finding.count:,} {finding.kind}: {finding.meaning}")
    return decoded if decoded.groups is not None else replace(decoded, groups=report.duplicates[report.good])


def decode(dataset: Dataset, recipe: Recipe, run: OpenRun) -> Dataset:
    """The images in the size that the network needs, from the cache on disk."""
    return data.decoded(dataset, short_side(recipe), progress=run.stage("decoding the images"))


def short_side(recipe: Recipe) -> int:
    """The shorter side of the decoded images, in pixels."""
    side = build.views(recipe, Preprocessing()).preprocessing.resize
    assert side is not None
    return side


def split(dataset: Dataset, recipe: Recipe) -> Parts:
    """The classes that train, validate and test in one run."""
    parts = protocol.parts(recipe, dataset)
    others = tuple((name, data.decoded(part, short_side(recipe))) for name, part in parts.others)
    return parts._replace(others=others)


def _shared(parts: Parts) -> bool:
    """Whether a label occurs in training and in a part that judges; only where images have several labels."""
    named = [part.supervision for part in parts[:3] if part is not None and part.sets is not None]
    numbers = [set(part.numbers.flatten().tolist()) - {EMPTY} for part in named if isinstance(part, LabelSets)]
    return any(numbers[0] & other for other in numbers[1:])


def announce(parts: Parts, recipe: Recipe, run: OpenRun) -> None:
    """Note how the classes were split, and what that means for the choice of weights."""
    named = zip(("train", "validation", "test"), parts[:3], strict=True)
    sizes = [f"{name} {part.present:,} classes, {len(part):,} images" for name, part in named if part is not None]
    run.note(
        "; ".join(sizes) + ("; labels occur in several of them" if _shared(parts) else "; no class in two of them")
    )
    if recipe.protocol.select == "test_max":
        run.note("the test images select the weights, as in some papers: the figures are optimistic")
    elif parts.validation is None:
        run.note("no classes are held back for validation: the last weights are kept, not the best")
