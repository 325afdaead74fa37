"""Every statement comes out as expected, and comes out otherwise when the code it is about is broken."""

import pytest
import torch
from torch import nn

from lookalike.errors import UserError
from lookalike.losses import FastAP, TopKPrecision
from papers.ccp.covers import CROWDED, OVERLAPPING, SEPARATED, _cover, cover_gap
from papers.ccp.operator_norm import lipschitz_bound, operator_norm, product_of, windows_per_pixel
from papers.fastap.statements import average_precision, fastap_statements
from papers.statement import tried
from papers.theorem_picture import draw_theorems, theorem_numbers
from papers.theorems import check_theorems
from papers.top_k.statements import top_k_statements
from tests.fixtures.figure_rules import assert_readable


def verdicts(statements):
    return {statement.name: statement.verdict for statement in statements}


@pytest.mark.parametrize("seed", [0, 1])
def test_everything_comes_out_as_expected(seed):
    statements = check_theorems(cases=40, seed=seed)
    assert {s.verdict for s in statements} == {"holds", "fails"}
    assert {s.name for s in statements if not s.expected} == {
        "limit",
        "sphere",
        "columns",
        "step",
        "pool 3/2",
        "P4.2 mean",
    }
    assert all(s.remark for s in statements if not s.expected), "a failure says why"


def test_a_loss_without_its_margin_breaks_the_theorems(monkeypatch, generator):
    whole = TopKPrecision.per_query
    monkeypatch.setattr(TopKPrecision, "per_query", lambda self, s, p: whole(TopKPrecision(self.k, 0.0), s, p))
    outcome = verdicts(top_k_statements(200, generator))
    assert outcome["T3"] == "fails (unexpected)"
    assert outcome["shift"] == "holds"


def test_a_fastap_that_counts_wrongly_is_found(monkeypatch, generator):
    whole = FastAP.of_similarities
    monkeypatch.setattr(FastAP, "of_similarities", lambda self, s, p: 0.9 * whole(self, s, p))
    outcome = verdicts(fastap_statements(60, generator))
    assert outcome["centres"] == outcome["eq. 17"] == "fails (unexpected)"


def test_a_statement_may_fail_in_its_share_of_cases():
    slacks = torch.tensor([1.0] * 19 + [-1.0])
    assert tried("a", "b", "c", slacks, allowed=0.05).holds
    assert not tried("a", "b", "c", slacks, allowed=0.04).holds
    with pytest.raises(UserError, match="no case"):
        tried("a", "b", "c", torch.zeros(0))


def test_too_few_cases_are_refused():
    with pytest.raises(UserError, match="20 cases"):
        check_theorems(cases=5)


def test_average_precision_by_hand():
    squared = torch.tensor([[0.3, 0.1, 0.2, 0.4]])
    relevant = torch.tensor([[True, False, True, True]])
    assert average_precision(squared, relevant).item() == pytest.approx((1 / 2 + 2 / 3 + 3 / 4) / 3)


@pytest.mark.parametrize(
    "layer",
    [
        nn.Linear(5, 7),
        nn.Conv2d(2, 3, 3),
        nn.Conv2d(2, 4, 3, stride=2, padding=1, groups=2),
        nn.Conv2d(2, 2, 2, dilation=2),
    ],
)
def test_operator_norm_is_the_largest_singular_value(layer, generator):
    with torch.no_grad():
        for weight in layer.parameters():
            weight.normal_(generator=generator)
    shape = (5,) if isinstance(layer, nn.Linear) else (2, 6, 6)
    size = int(torch.tensor(shape).prod())
    with torch.no_grad():
        columns = layer(torch.eye(size).view(size, *shape)) - layer(torch.zeros(1, *shape))
    exact = torch.linalg.matrix_norm(columns.flatten(1).double(), 2).item()
    assert operator_norm(layer, shape, generator) == pytest.approx(exact, rel=1e-3)


def test_the_bound_of_a_chain(generator):
    chain = nn.Sequential(
        nn.Conv2d(1, 3, 3), nn.BatchNorm2d(3), nn.ReLU(), nn.MaxPool2d(3, 2), nn.Flatten(), nn.Linear(27, 2)
    )
    with pytest.raises(UserError, match=r"\.eval\(\)"):
        lipschitz_bound(chain, (1, 9, 9))
    chain.eval()
    chain[1].running_var.fill_(4.0)
    stretches = lipschitz_bound(chain, (1, 9, 9), generator)
    constants = [round(stretch.constant, 3) for stretch in stretches]
    assert constants[1:5] == [0.5, 1, 2, 1]
    left, step = torch.randn(64, 1, 9, 9, generator=generator), torch.randn(64, 1, 9, 9, generator=generator)
    with torch.no_grad():
        ratios = (chain(left + step) - chain(left)).norm(dim=1) / step.flatten(1).norm(dim=1)
    assert ratios.max() < product_of(stretches)


def test_what_has_no_constant_is_refused():
    with pytest.raises(UserError, match="Softmax has no known constant"):
        lipschitz_bound(nn.Sequential(nn.Softmax(1)).eval(), (3,))
    with pytest.raises(UserError, match="not a linear layer"):
        operator_norm(nn.ReLU(), (3,))


@pytest.mark.parametrize(("kernel", "stride", "windows"), [(2, 2, 1), (3, 2, 4), (3, 1, 9), (2, 3, 1)])
def test_windows_per_pixel_by_counting(kernel, stride, windows):
    pool = nn.MaxPool2d(kernel, stride)
    counts = [(pool(torch.eye(144)[at].view(1, 12, 12)) > 0).sum().item() for at in range(144)]
    assert windows_per_pixel(pool) == windows == max(counts)


@pytest.mark.parametrize("world", [OVERLAPPING, SEPARATED, CROWDED])
def test_expectations_against_many_draws(world, generator):
    (left, ours), (right, theirs) = world.draw(200_000, generator), world.draw(200_000, generator)
    seen = world.loss((left - right).abs(), ours == theirs)
    error = 5 * float(seen.std()) / len(seen) ** 0.5
    assert world.expectation() == pytest.approx(float(seen.mean()), abs=error)
    assert float(world.expected(left, ours).mean()) == pytest.approx(float(seen.mean()), abs=2 * error)
    assert float(seen.max()) <= world.largest


@pytest.mark.parametrize("world", [OVERLAPPING, SEPARATED, CROWDED])
def test_the_mean_over_all_pairs_is_that_of_the_matrix(world, generator):
    points, classes = world.draw(200, generator)
    losses = world.loss((points[:, None] - points).abs(), classes[:, None] == classes)
    assert world.mean(points, classes) == pytest.approx(float(losses.mean()), rel=1e-12)


def test_covers_by_hand():
    points, classes = torch.tensor([0.1, 0.5, 0.9, 0.2, 0.6], dtype=torch.float64), torch.tensor([0, 0, 0, 1, 1])
    assert OVERLAPPING.radius(points, classes) == pytest.approx(0.2)
    assert OVERLAPPING.covering_number(0.1) == 5 + 4
    line = torch.tensor([0.0, 0.3, 0.1, 0.2, 0.5], dtype=torch.float64)
    assert sorted(line[_cover(line, line >= 0, 0.1)].tolist()) == [0.1, 0.3, 0.5]


def test_samples_that_do_not_cover_are_no_case(generator):
    assert cover_gap(OVERLAPPING, 3, generator) is None


def test_the_picture_can_be_read():
    assert_readable(draw_theorems(theorem_numbers(cases=20)))
