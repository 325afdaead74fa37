"""Metrics of a set of embeddings as a whole, measured only when named: clustering and geometry. They have no queries.

With a gallery, the set is queries and gallery together.
"""

from collections.abc import Callable, Sequence

from torch import Tensor

from lookalike.cluster import k_means
from lookalike.evaluation import clustering
from lookalike.evaluation.geometry import covering_radius, spectrum, spread
from lookalike.evaluation.inputs import Codes
from lookalike.progress import Progress

AGREEMENT: dict[str, Callable[[Codes, Codes], float]] = {
    "nmi": clustering.nmi,
    "ami": clustering.ami,
    "f1": clustering.f1,
}
SHAPE: dict[str, Callable[[Tensor, Codes], float]] = {
    "intra": spread.intra,
    "inter": spread.inter,
    "intra_inter": spread.intra_inter,
    "alignment": spread.alignment,
    "uniformity": lambda vectors, _: spread.uniformity(vectors),
}


def measure_clustering(
    names: Sequence[str], vectors: Tensor, codes: Codes, seed: int, progress: Progress | None = None
) -> dict[str, float]:
    """k-means with as many clusters as there are classes [math F.5], and how well the two partitions agree."""
    groups = k_means(vectors, len(set(codes.tolist())), seed=seed, progress=progress)
    clusters = groups.assignment.cpu().numpy()
    return {name: AGREEMENT[name](clusters, codes) for name in names}


def measure_geometry(names: Sequence[str], vectors: Tensor, codes: Codes) -> dict[str, float]:
    values = {name: SHAPE[name](vectors, codes) for name in names if name in SHAPE}
    if any(name in ("rho", "rho@0", "rho@9") for name in names):
        values |= measure_rho(names, vectors)
    if "rho_class" in names:
        by_class = spectrum.rho_by_class(vectors, codes)
        values["rho_class"] = sum(by_class.values()) / len(by_class) if by_class else float("nan")
    if "covering_radius" in names:
        values["covering_radius"] = covering_radius.covering_radius(vectors, codes)
        values["inter_class_distance"] = covering_radius.between_classes(vectors, codes)
    return values


def measure_rho(names: Sequence[str], vectors: Tensor) -> dict[str, float]:
    """`rho` drops the largest singular value, as the paper's figure; `rho@0`, beside it, drops none.

    Where the vectors do not span their space, `rank` says how many directions count.
    """
    values = spectrum.singular_values(vectors)
    divergences = {} if len(values) == min(vectors.shape) else {"rank": float(len(values))}
    if "rho" in names:
        divergences["rho"] = spectrum.of_spectrum(values, 1)
    if "rho" in names or "rho@0" in names:
        divergences["rho@0"] = spectrum.of_spectrum(values, 0)
    if "rho@9" in names:
        divergences["rho@9"] = spectrum.of_spectrum(values, 9)
    return divergences
