"""Maps from the vectors of one model to those of another, learnt from items that both have embedded.

With centred vectors X of the old model and Y of the new one, as rows:
orthogonal: min ‖XW − Y‖ over WᵀW = I or WWᵀ = I, which is W = UVᵀ of the singular vectors of XᵀY (Schönemann, A
generalized solution of the orthogonal Procrustes problem, Psychometrika 1966);
ridge: min ‖XW − Y‖² + λ‖W‖², with the λ whose predictions of each row from the others have the least error (Allen, The
relationship between variable selection and data augmentation, Technometrics 1974). A network with a hidden layer beside
it was measured and is not worth its time: `benchmarks/upgrade.py`.
"""

from collections.abc import Callable, Mapping

import numpy as np
from jaxtyping import Float32

PENALTIES = np.logspace(-5, 2, 22)  # λ as parts of the largest squared singular value of X
OldVectors = Float32[np.ndarray, "n old"]
NewVectors = Float32[np.ndarray, "n new"]
VectorMap = Callable[[OldVectors], NewVectors]


def orthogonal(old: OldVectors, new: NewVectors) -> VectorMap:
    from_, to = old.mean(0), new.mean(0)
    left, scales, right = np.linalg.svd((old - from_).T @ (new - to), full_matrices=False)
    scale = scales.sum() / max(float(np.square(old - from_).sum()), 1e-12)
    return _affine(from_, scale * left @ right, to)


def ridge(old: OldVectors, new: NewVectors) -> VectorMap:
    from_, to = old.mean(0), new.mean(0)
    left, singular, right = np.linalg.svd((old - from_).astype(np.float64), full_matrices=False)
    squares, target = singular**2, (new - to).astype(np.float64)
    turned = left.T @ target

    def error(penalty: float) -> float:
        kept = squares / (squares + penalty)
        leverage = 1 / len(old) + (left**2) @ kept
        rest = target - left @ (kept[:, None] * turned)
        return float(np.square(rest / np.maximum(1 - leverage, 1e-6)[:, None]).sum())

    penalty = min(PENALTIES * max(squares[0], 1e-12), key=error)
    return _affine(from_, right.T @ ((singular / (squares + penalty))[:, None] * turned), to)


KINDS: Mapping[str, Callable[[OldVectors, NewVectors], VectorMap]] = {"orthogonal": orthogonal, "ridge": ridge}


def _affine(from_: np.ndarray, matrix: np.ndarray, to: np.ndarray) -> VectorMap:
    matrix = np.asarray(matrix, np.float32)
    return lambda vectors: np.asarray((vectors - from_) @ matrix + to, np.float32)
