"""A result as a table for the terminal: metrics at K side by side, the others below, as fractions."""

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from lookalike.evaluation.metrics import AT_K
from lookalike.evaluation.names import GEOMETRY

if TYPE_CHECKING:
    from lookalike.evaluation.result import Result

NOT_SHARES = (*GEOMETRY, "inter_class_distance")  # tables beside those of papers give all others in percent


def aligned(rows: list[list[str]], words: Collection[int] = (0,)) -> list[str]:
    """Rows as lines: the columns of `words` to the left, figures to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    cells = [
        [
            cell.ljust(width) if k in words else cell.rjust(width)
            for k, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        for row in rows
    ]
    return ["  ".join(row).rstrip() for row in cells]


def at_k(metrics: Mapping[str, float]) -> list[str]:
    """recall@1, recall@2, … as one row per family and one column per K."""
    families: dict[str, dict[int, float]] = {}
    for name, value in metrics.items():
        family, _, k = name.partition("@")
        if family in AT_K and k.isdecimal():
            families.setdefault(family, {})[int(k)] = value
    if not families:
        return []
    ks = sorted({k for values in families.values() for k in values})
    rows = [["", *(f"@{k}" for k in ks)]]
    for family, values in families.items():
        rows.append([family, *(f"{values[k]:.4f}" if k in values else "" for k in ks)])
    return aligned(rows)


def others(metrics: Mapping[str, float]) -> list[str]:
    rows = [[name, f"{value:.4f}"] for name, value in metrics.items() if not is_at_k(name)]
    return aligned(rows) if rows else []


def is_at_k(name: str) -> bool:
    family, _, k = name.partition("@")
    return family in AT_K and k.isdecimal()


def of_result(result: "Result") -> str:
    facts = result.facts
    sizes = [facts.get(key, 0) for key in ("queries", "gallery", "classes")]
    lines = ["{:,} queries, {:,} in the gallery, {:,} classes".format(*sizes)]
    lines += result.warnings
    for part in (at_k(result), others(result)):
        if part:
            lines += ["", *part]
    return "\n".join(lines)
