"""Maps between the vectors of two models: against scikit-learn, SciPy and plain loops."""

import numpy as np
import pytest
from scipy.linalg import orthogonal_procrustes
from sklearn.linear_model import RidgeCV

from lookalike.search.upgrading.maps import KINDS, PENALTIES, choose, ridge


def drawn(rows, old, new, noise=0.3, seed=0):
    draw = np.random.default_rng(seed)
    inner = draw.standard_normal((rows, 12))
    first, second = draw.standard_normal((12, old)), draw.standard_normal((12, new))
    x = inner @ first + noise * draw.standard_normal((rows, old)) + 2.0
    y = inner @ second + noise * draw.standard_normal((rows, new)) - 1.0
    return x.astype(np.float32), y.astype(np.float32)


@pytest.mark.parametrize(("rows", "old", "new"), [(40, 60, 9), (200, 20, 30)])
def test_ridge_is_that_of_scikit_learn(rows, old, new):
    x, y = drawn(rows, old, new)
    scale = np.linalg.svd(x - x.mean(0), compute_uv=False)[0] ** 2
    expected = RidgeCV(PENALTIES * scale, scoring="neg_mean_squared_error").fit(x, y)
    assert np.allclose(ridge(x, y)(x + 0.1), expected.predict(x + 0.1), atol=1e-3)


@pytest.mark.parametrize("kind", KINDS)
def test_a_rotation_is_found(kind):
    x, _ = drawn(300, 16, 16)
    turn, _ = np.linalg.qr(np.random.default_rng(1).standard_normal((16, 16)))
    new = (3 * (x @ turn) + 1).astype(np.float32)
    found = KINDS[kind](x[:200], new[:200])(x[200:])
    assert np.abs(found - new[200:]).max() < 0.02 * np.abs(new).max()


def test_the_orthogonal_map_is_that_of_scipy():
    x, y = drawn(50, 12, 12)
    matrix, scale = orthogonal_procrustes(x - x.mean(0), y - y.mean(0))
    scale /= np.square(x - x.mean(0)).sum()
    assert np.allclose(KINDS["orthogonal"](x, y)(x), (x - x.mean(0)) @ matrix * scale + y.mean(0), atol=1e-3)


def counted(queries, gallery, relevant):
    found = []
    for row, query in enumerate(queries):
        if any(relevant[row]):
            order = sorted((place for place in range(len(gallery)) if place != row), key=lambda p: -query @ gallery[p])
            found.append(any(relevant[row][place] for place in order[:10]))
    return np.mean(found)


def unit(vectors):
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@pytest.mark.parametrize("labelled", [True, False])
def test_the_recall_of_the_sample_is_counted(labelled):
    x, y = (unit(one) for one in drawn(120, 24, 10, noise=2.0))
    labels = [f"{row % 40}" if row % 7 else None for row in range(120)] if labelled else [None] * 120
    if labelled:
        relevant = [
            [one is not None and one == other and i != j for j, other in enumerate(labels)]
            for i, one in enumerate(labels)
        ]
    else:
        near = [max((j for j in range(120) if j != i), key=lambda j: y[i] @ y[j]) for i in range(120)]
        relevant = [[j == near[i] for j in range(120)] for i in range(120)]
    result = choose(x, y, labels, "sphere")
    assert (result.old, result.new) == pytest.approx((counted(x, x, relevant), counted(y, y, relevant)))
    assert result.mapped.keys() == KINDS.keys()
    assert result.kind == max(result.mapped, key=result.mapped.get)
    folds = np.random.default_rng(0).permutation(120) % 5
    left_out = np.empty_like(y)
    for fold in range(5):
        left_out[folds == fold] = ridge(x[folds != fold], y[folds != fold])(x[folds == fold])
    assert result.mapped["ridge"] == pytest.approx(counted(y, unit(left_out), relevant))


def test_rows_that_a_map_has_seen_do_not_judge_it():
    """Noise is mapped perfectly where there are more dimensions than rows, and to nothing elsewhere."""
    draw = np.random.default_rng(0)
    x, y = (unit(draw.standard_normal((150, 300))).astype(np.float32) for _ in range(2))
    assert choose(x, y, [None] * 150, "sphere").share < 0.3
