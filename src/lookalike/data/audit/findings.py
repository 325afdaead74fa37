"""Findings of an audit about images that belong together: copies, the most harmful kind first."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from lookalike.data.audit.duplicates import exact_groups, near_groups
from lookalike.data.audit.scan import Scan
from lookalike.data.dataset import SPLITS, Dataset

SHOWN = 3  # examples of a finding, and images of a group, in the words for people


@dataclass(frozen=True)
class Finding:
    """One kind of problem and the images that have it, in groups if they belong together."""

    kind: str
    count: int
    meaning: str
    items: list[Any]


def in_words(item: Any) -> str:
    """An item of a finding as people read it.

    >>> in_words([{"path": "a.jpg", "label": "owl", "split": "test"}, {"path": "b.jpg", "label": "hen"}])
    'a.jpg [owl, test] = b.jpg [hen]'
    """
    if isinstance(item, list):
        return " = ".join(map(in_words, item[:SHOWN])) + (" = …" if len(item) > SHOWN else "")
    if not isinstance(item, Mapping):
        return str(item)
    path, facts = item.get("path", ""), [item[name] for name in ("label", "split") if item.get(name)]
    if "detail" in item:
        return f"{path}: {item['detail']}"
    return f"{path} [{', '.join(facts)}]" + (f" looks like {item['looks_like']}" if "looks_like" in item else "")


def duplicate_findings(dataset: Dataset, scanned: Scan) -> list[Finding]:
    """Copies, the most harmful kind first."""
    exact, near = exact_groups(scanned), near_groups(scanned)
    findings = []
    for kind, groups in (("copies", exact), ("near duplicates", near)):
        for scope, meaning in (
            (
                "across splits",
                "test images were seen in training: remove them or split with class_disjoint(together=…)",
            ),
            ("across classes", "one photo with two labels: at least one of them is wrong"),
            ("within a class", "harmless, but they make retrieval look easier than it is"),
        ):
            members = _in_scope(dataset, groups, scope)
            if groups is near:  # exact copies are in the list of copies already
                members = [
                    rows for rows in members if not bool((exact[rows] == exact[rows[0]]).all() and exact[rows[0]] >= 0)
                ]
            findings.append(
                Finding(f"{kind} {scope}", len(members), meaning, [names(dataset, rows) for rows in members])
            )
    return findings


def _in_scope(dataset: Dataset, groups: Tensor, scope: str) -> list[list[int]]:
    """The groups (as rows) that extend across splits, across classes, or within one class."""
    classless = dataset.sets is not None  # copies need not have the same labels there
    if dataset.splits is None if scope == "across splits" else classless:
        return []
    order = groups.argsort(stable=True)[int((groups < 0).sum()) :]
    sizes = torch.bincount(groups[order]).tolist() if len(order) else []
    result = []
    for rows in torch.split(order, sizes) if sizes else []:
        column = dataset.splits if scope == "across splits" else dataset.labels
        assert column is not None
        several = bool((column[rows] != column[rows[0]]).any())
        if several != (scope == "within a class"):
            result.append(rows.tolist())
    return result


def names(dataset: Dataset, rows: list[int]) -> list[dict[str, Any]]:
    """Path, label and split of some images, for a list that people read."""
    result: list[dict[str, Any]] = []
    for row in rows:
        entry = {"path": dataset.images.name(row), "label": dataset.label_names[int(dataset.labels[row])]}
        if dataset.splits is not None:
            place = int(dataset.splits[row])
            entry["split"] = SPLITS[place] if place >= 0 else ""
        result.append(entry)
    return result
