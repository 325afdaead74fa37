"""The published figures of the row that a row of a study repeats, where both are about the same set."""

import json
from functools import cache
from importlib.resources import files
from typing import Any

SAMPLERS = {
    "class_balanced 2 112": "SPC-2",
    "class_balanced 4 112": "SPC-4",
    "class_balanced 8 112": "SPC-8",
    "distribution_match 112": "DDM",
    "coreset 112": "GC",
    "class_random 112": "SPC-R",
    "frechet 112": "FRD",
}
MINERS = {"(D)": "distance_weighted", "(R)": "random", "(S)": "semihard", "(H)": "softhard"}
TOP_K = {
    "Triplet, uniform": ("Triplet", "random"),
    "Triplet, hard": ("Triplet", "hard"),
    "Triplet, semihard": ("Triplet", "semihard"),
    "Margin, distance weighted": ("Distance Weighted", None),
    "Lifted structure": ("Lifted Structure", None),
    "N-pair": ("N-Pair", None),
}
SWITCHED = {"probability 0.0": "Margin(D, b 0.6)", "probability 0.4": "R-Margin(D, b 0.6)"}
BATCHES = ("20", "40", "80", "160", "240")  # of the supplement's table 1, in its order


def published(study: str, row: str) -> dict[str, float]:
    """Metrics by name; empty where the paper has no such row.

    >>> published("cub_ccp", "C2-CCP-L")["map@r"]
    0.2267
    >>> published("cub_roth_losses", "R-Margin(D, b 0.6)")["recall@1"], published("cub_ms_batch_size", "batch_size 80")
    (0.6493, {'recall@1': 0.6565})
    >>> published("cars_ccp", "C1")["map@r"], published("cars_ms_ablation", "Binomial, mined")["recall@1"]
    (0.1613, 0.746)
    """
    if study.startswith("cars_"):
        return _of_cars(study, row)
    if study in ("cub_ccp", "cub_ccp_fast", "cub_ccp_own_rates", "cub_ccp_proxy_losses") or row.startswith("C1"):
        return _first("ccp", "table 2", method=row, dim=128)
    if study in ("cub_roth_losses", "cub_p_switch", "cub_mixup", "cub_finetuned"):
        return _roth(SWITCHED.get(row, row), "table 4", "cub200")
    if study == "cub_roth_samplers":
        loss, _, sampler = row.partition(", ")
        return _first("roth", "table 7", method=loss.removesuffix("(R)"), sampler=SAMPLERS.get(sampler))
    if study == "cub_top_k":
        return _top_k(row, "cub200")
    if study == "cub_embedding_size":
        return _first("ms", "table 3", method="MS", dim=int(row.removeprefix("dim ")))
    if study == "cub_ms_batch_size":
        rows = _rows("ms", "supplement table 1")
        return rows[BATCHES.index(row.removeprefix("batch_size "))]["metrics"]  # type: ignore[no-any-return]
    return {}


def _of_cars(study: str, row: str) -> dict[str, float]:
    if study == "cars_ccp":
        return _first("ccp", "table 2", "cars196", method=row, dim=128)
    if study == "cars_roth_losses":
        return _roth(row, "table 5", "cars196")
    if study == "cars_top_k":
        return _top_k(row, "cars196")
    return _first("ms", "table 2", "cars196", method=row.replace(", mined", "_m"))


def _top_k(row: str, dataset: str) -> dict[str, float]:
    method, miner = TOP_K.get(row, (row, None))
    return _first("top_k", "table 1", dataset, method=method, **({"miner": miner} if miner else {}))


def _roth(row: str, table: str, dataset: str) -> dict[str, float]:
    """Rows such as "R-Margin(D, b 0.6)" as tables 4 and 5 have them.

    >>> _roth("Triplet(S)", "table 4", "cub200")["recall@1"]
    0.6009
    """
    name, _, inside = row.partition("(")
    inside, _, boundary = inside.removesuffix(")").partition(", b ")
    method = name + (f" (beta={boundary})" if boundary else "")
    miner = MINERS.get(f"({inside})") if inside and not name.startswith("R-") else None
    return _first("roth", table, dataset, method=method, **({"miner": miner} if miner else {}))


def _first(paper: str, table: str, dataset: str = "cub200", **facts: Any) -> dict[str, float]:
    for row in _rows(paper, table, dataset):
        if all(row.get(name) == value for name, value in facts.items()):
            metrics: dict[str, float] = row["metrics"]
            return metrics
    return {}


@cache
def _rows(paper: str, table: str, dataset: str = "cub200") -> list[dict[str, Any]]:
    text = (files("lookalike.report.compare") / "published.json").read_text(encoding="utf-8")
    content = json.loads(text)
    known = [row for row in content["rows"] if row["dataset"] == dataset and row["table"] == table]
    return [row for row in known if row["paper"] == paper]
