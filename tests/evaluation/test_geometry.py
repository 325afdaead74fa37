"""The shape of the space, against definitions written as loops."""

import math

import numpy as np
import pytest
import torch

from lookalike.evaluation import Result, evaluate
from lookalike.evaluation.geometry import covering_radius, spectrum, spread


def cloud(rows=40, classes=6, width=5):
    draw = np.random.default_rng(7)
    labels = np.r_[draw.integers(0, classes, rows - 1), classes]  # the last class has one sample
    vectors = draw.standard_normal((rows, width))
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True), labels


def test_intra_and_inter():
    vectors, labels = cloud()
    inside, means = [], []
    for label in set(labels.tolist()):
        members = vectors[labels == label]
        pairs = [1 - a @ b for i, a in enumerate(members) for j, b in enumerate(members) if i != j]
        inside += [np.mean(pairs)] if pairs else []
        means.append(members.mean(0) / np.linalg.norm(members.mean(0)))
    between = [1 - a @ b for i, a in enumerate(means) for j, b in enumerate(means) if i != j]
    tensor = torch.tensor(vectors)
    assert spread.intra(tensor, labels) == pytest.approx(np.mean(inside), abs=1e-12)
    assert spread.inter(tensor, labels) == pytest.approx(np.mean(between), abs=1e-12)
    assert spread.intra_inter(tensor, labels) == pytest.approx(np.mean(inside) / np.mean(between), abs=1e-12)


def test_alignment_and_uniformity():
    vectors, labels = cloud()
    squares = ((vectors[:, None] - vectors) ** 2).sum(2)
    other = ~np.eye(len(labels), dtype=bool)
    same = (labels[:, None] == labels) & other
    assert spread.alignment(torch.tensor(vectors), labels) == pytest.approx(squares[same].mean(), abs=1e-12)
    expected = math.log(np.exp(-2 * squares[other]).mean())
    assert spread.uniformity(torch.tensor(vectors, dtype=torch.float32), block=16) == pytest.approx(expected, abs=1e-5)


def test_rho():
    vectors, labels = cloud()
    for drop in (0, 1):
        values = np.linalg.svd(vectors, compute_uv=False)[drop:]
        share = values / values.sum()
        expected = -np.mean(np.log(len(values) * share))
        assert spectrum.rho(torch.tensor(vectors), drop) == pytest.approx(expected, abs=1e-12)
    by_class = spectrum.rho_by_class(torch.tensor(vectors), labels)
    assert set(by_class) == {label for label in range(6) if (labels == label).sum() > 2}
    assert by_class[0] == pytest.approx(spectrum.rho(torch.tensor(vectors[labels == 0])), abs=1e-12)
    first = np.mean([np.linalg.svd(vectors[labels == label], compute_uv=False)[0] for label in range(7)])
    assert float(spectrum.class_spectrum(torch.tensor(vectors), labels)[0]) == pytest.approx(first, abs=1e-12)


def test_rho_falls_as_the_spectrum_flattens():
    generator = torch.Generator().manual_seed(0)
    flat = torch.randn(500, 16, generator=generator)
    steep = flat * torch.logspace(0, -2, 16)
    assert spectrum.rho(flat) < spectrum.rho(steep)
    assert spectrum.rho(torch.ones(20, 4), drop=1) > 1  # collapsed: nothing but rounding is left


def test_directions_without_vectors_do_not_count():
    """A head of 12 dimensions on 5 features: rho is that of the 5, and the result says so."""
    generator = torch.Generator().manual_seed(0)
    features = torch.randn(60, 5, generator=generator)
    wide = features @ torch.linalg.qr(torch.randn(12, 5, generator=generator))[0].T
    assert spectrum.rho(wide) == pytest.approx(spectrum.rho(features), abs=1e-5)
    result = evaluate(wide, torch.arange(60) % 6, metrics=["rho"], normalise="none")
    assert result["rank"] == 5
    assert "rank" not in evaluate(features, torch.arange(60) % 6, metrics=["rho"], normalise="none")


def test_covering_radius_is_monotone_and_ends_at_zero():
    vectors, labels = cloud()
    tensor = torch.tensor(vectors)
    for label in range(6):
        radii = covering_radius.radii(tensor[labels == label])
        assert (radii.diff() <= 0).all()
        assert radii[-1] == 0
        members = vectors[labels == label]
        best = min(max(np.linalg.norm(a - b) for b in members) for a in members)
        assert float(radii[0]) == pytest.approx(best, abs=1e-9)
    means = [float(covering_radius.radii(tensor[labels == label]).mean()) for label in range(7)]
    assert covering_radius.covering_radius(tensor, labels) == pytest.approx(np.mean(means), abs=1e-12)
    distances = np.sqrt(((vectors[:, None] - vectors) ** 2).sum(2))
    expected = distances[labels[:, None] != labels].mean()
    assert covering_radius.between_classes(tensor, labels) == pytest.approx(expected, abs=1e-6)


def test_evaluate_measures_them_when_named():
    vectors, labels = cloud()
    named = "rho rho@0 rho_class intra inter intra_inter covering_radius alignment uniformity nmi ami f1"
    result = evaluate(vectors.astype("f"), labels, metrics=named, categories=labels % 2)
    assert set(named.split()) <= set(result)
    assert {"category_nmi", "category_ami", "category_f1", "inter_class_distance"} <= set(result)
    assert not result.per_query
    assert result["intra"] == pytest.approx(spread.intra(torch.tensor(vectors), labels), abs=1e-6)
    assert all(math.isfinite(value) for value in result.values())
    kept = Result.from_json(result.to_json()).curves["class_spectrum"]
    unit = torch.nn.functional.normalize(torch.tensor(vectors.astype("f")))
    assert kept["place"].tolist() == list(range(1, len(kept["value"]) + 1))
    assert kept["value"] == pytest.approx(spectrum.class_spectrum(unit, labels).numpy(), abs=1e-5)


def test_queries_and_gallery_are_one_set():
    vectors, labels = cloud()
    named = "intra inter rho covering_radius nmi"
    whole = evaluate(vectors.astype("f"), labels, metrics=named)
    apart = evaluate(
        vectors[:20].astype("f"),
        labels[:20],
        gallery=vectors[20:].astype("f"),
        gallery_labels=labels[20:],
        metrics=named,
    )
    assert dict(apart) == pytest.approx(dict(whole))
