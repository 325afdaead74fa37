"""The names of metrics, and what a user may write for them.

`recall@10` is one metric, `recall@1,10,100` three, `recall` (or `recall@K`) all the usual K; `tar@0.001` is TAR@FAR.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from lookalike.errors import UserError, check, unknown
from lookalike.evaluation.metrics import AT_K, ON_REQUEST, PLAIN

USUAL_K = (1, 2, 4, 8, 10, 16, 32, 100, 1000)
CLUSTERING = ("nmi", "ami", "f1")
GEOMETRY = (
    "rho",
    "rho@0",
    "rho@9",
    "rho_class",
    "intra",
    "inter",
    "intra_inter",
    "covering_radius",
    "alignment",
    "uniformity",
)
WITHOUT_CLASSES = ("rho", "rho@0", "rho@9", "uniformity")  # of GEOMETRY
CURVES = ("pr", "roc", "cmc", "retrieval_pr")


@dataclass(frozen=True)
class Names:
    """Metrics by how they are measured, in the order they were named."""

    ranking: tuple[str, ...] = ()
    clustering: tuple[str, ...] = ()
    geometry: tuple[str, ...] = ()
    curves: tuple[str, ...] = ()
    rates: tuple[float, ...] = ()  # false-accept rates of tar@FAR


def ranking_names() -> list[str]:
    return [f"{family}@{k}" for family in AT_K for k in USUAL_K] + [name for name in PLAIN if name not in ON_REQUEST]


def possible() -> list[str]:
    """The possible names, for messages about a misspelt one."""
    families = [f"{family}@K" for family in AT_K]
    return [*families, *PLAIN, *CLUSTERING, *GEOMETRY, *CURVES, "tar@FAR"]


def expand(name: str) -> list[str]:
    """The metrics that one name stands for.

    >>> expand("recall@1,10")
    ['recall@1', 'recall@10']
    """
    family, at, tail = name.partition("@")
    if name in PLAIN or name in CLUSTERING + GEOMETRY + CURVES:
        return [name]
    if family in AT_K and tail in ("", "K", "k"):
        return [f"{family}@{k}" for k in USUAL_K]
    if family in AT_K:
        return [f"{family}@{whole(k, name)}" for k in tail.split(",")]
    if family == "tar" and at:
        return [f"tar@{rate(far, name)}" for far in tail.split(",")]
    raise unknown("metric", name, possible())


def whole(text: str, name: str) -> int:
    check(
        text.strip().isdecimal() and len(text) < 10,
        f"'{name}': K must be a whole number such as recall@10, not '{text}'",
    )
    check(int(text) > 0, f"'{name}': K must be at least 1")
    return int(text)


def rate(text: str, name: str) -> str:
    try:
        inside = 0 < float(text) < 1
    except ValueError:
        inside = False
    check(inside, f"'{name}': the false-accept rate must lie between 0 and 1, such as tar@0.001, not '{text}'")
    return text.strip()


def split(text: str) -> list[str]:
    """A list in one string; a bare number belongs to the name before it.

    >>> split("recall@1,10 map@r,nmi")
    ['recall@1,10', 'map@r', 'nmi']
    """
    parts: list[str] = []
    for word in text.replace(",", " ").split():
        if parts and word[0].isdigit():
            parts[-1] += f",{word}"
        else:
            parts.append(word)
    return parts


def read(metrics: str | Iterable[str] | None) -> Names:
    """The metrics a user names; None: all ranking metrics at the usual K."""
    if metrics is None:
        return Names(ranking=tuple(ranking_names()))
    words = split(metrics) if isinstance(metrics, str) else list(metrics)
    if not words:
        raise UserError("metrics is empty: name at least one, or leave it out for all ranking metrics")
    names = list(dict.fromkeys(name for word in words for name in expand(word)))
    return Names(
        ranking=tuple(name for name in names if name in PLAIN or name.partition("@")[0] in AT_K),
        clustering=tuple(name for name in names if name in CLUSTERING),
        geometry=tuple(name for name in names if name in GEOMETRY),
        curves=tuple(name for name in names if name in CURVES),
        rates=tuple(float(name[4:]) for name in names if name.startswith("tar@")),
    )
