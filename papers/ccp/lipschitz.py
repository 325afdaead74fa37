"""The Lipschitz facts of Chance Constraints, tried on random vectors, layers and one of our networks [math I.6].

Gürbüz, Can, Alatan: Deep Metric Learning with Chance Constraints, supplement, sec. 4. The slack of a case is the
constant minus the observed ratio.

Departs from the paper: its Lemma 4.1 is refuted by the two counter-examples below [math ERR-41], what Schur's test
gives instead is tried beside it; the projection onto the ball has constant 1, not 2 [math ERR-40].
"""

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn

from lookalike.geometry import normalise
from lookalike.losses import Contrastive
from lookalike.models import Conv4
from lookalike.targets import Pairs
from papers.ccp.operator_norm import lipschitz_bound, operator_norm, product_of
from papers.statement import Statement, tried

SOURCE = "Chance Constraints"
BOUNDARY, MARGIN, DIM = 1.0, 0.3, 4  # β, α of the generalised contrastive loss
SLOW = 200  # cases of statements that are slow to try


def lipschitz_statements(cases: int, generator: torch.Generator) -> list[Statement]:
    return [
        *_contrastive(min(cases, SLOW), generator),
        *_geometry(cases, generator),
        *_layers(min(cases, SLOW), generator),
        *_pooling(cases, generator),
        _network(min(cases, SLOW), generator),
    ]


def _contrastive(cases: int, generator: torch.Generator) -> list[Statement]:
    """[y (‖f − g‖ − β) + α]_+ as our contrastive loss with margins β − α and β + α, for one pair at a time."""
    loss = Contrastive(BOUNDARY - MARGIN, BOUNDARY + MARGIN, normalise="none")
    one, both = [], []
    for case in range(cases):
        same = torch.tensor([[case % 2 == 0]])
        pair = Pairs(same, ~same)
        points = torch.randn(2, 1, DIM, generator=generator, dtype=torch.float64)
        # along the line through both points the ratio is largest; else in any direction
        along = points[0] - points[1] if case % 4 < 2 else torch.randn(1, DIM, generator=generator, dtype=torch.float64)
        step = 0.2 * along * torch.rand((), generator=generator, dtype=torch.float64)
        here = loss(points[0], pair, candidates=points[1])
        moved = loss(points[0] + step, pair, candidates=points[1])
        apart = loss(points[0] + step, pair, candidates=points[1] - step)
        one.append(1 - (moved - here).abs() / step.norm())
        both.append(math.sqrt(2) - (apart - here).abs() / (math.sqrt(2) * step.norm()))
    claim = "[y (‖f − g‖ − β) + α]_+"
    return [
        tried("one", f"{claim} is 1-Lipschitz in f", f"{SOURCE}, sec. 4", torch.stack(one), rounding=1e-7),
        tried("both", f"{claim} is √2-Lipschitz in (f, g)", f"{SOURCE}, sec. 4", torch.stack(both), rounding=1e-7),
    ]


def _geometry(cases: int, generator: torch.Generator) -> list[Statement]:
    reach = 2 * torch.rand(2, cases, 1, generator=generator, dtype=torch.float64)
    left, right = torch.randn(2, cases, DIM, generator=generator, dtype=torch.float64) * reach
    near = left + 1e-3 * right
    ratios = [stretched(left, other, "ball") for other in (right, near)]
    ball = 1 - torch.cat(ratios)
    tiny = torch.tensor([[1e-6, 0.0], [0.0, 1e-6]], dtype=torch.float64)
    sphere = 1000 - stretched(tiny[:1], tiny[1:], "sphere")
    return [
        tried(
            "ball",
            "e = z / max(1, ‖z‖) is 1-Lipschitz",
            f"{SOURCE}, sec. 4.4",
            ball,
            remark="printed: 2, true but loose",
        ),
        tried(
            "sphere",
            "e = z / ‖z‖ is 1000-Lipschitz (or any other number)",
            f"{SOURCE}, sec. 4.4",
            sphere,
            expected=False,
            remark="two vectors of length 1e-6, a right angle apart, end √2 apart: ratio 1e6",
        ),
        tried("ball′", "gradient of the ball: I inside, (I − e eᵀ) / ‖z‖ outside", SOURCE, _ball_gradient(left)),
    ]


def stretched(left: Float[Tensor, "n d"], right: Float[Tensor, "n d"], geometry: str) -> Float[Tensor, " n"]:
    """‖e − e′‖ / ‖z − z′‖."""
    images = [normalise(vectors, geometry) for vectors in (left, right)]  # type: ignore[arg-type]
    ratios: Tensor = (images[0] - images[1]).norm(dim=1) / (left - right).norm(dim=1)
    return ratios


def _ball_gradient(vectors: Float[Tensor, "n d"]) -> Float[Tensor, " n"]:
    free = vectors.clone().requires_grad_()
    projected = normalise(free, "ball")
    rows = [torch.autograd.grad(projected[:, at].sum(), free, retain_graph=True)[0] for at in range(DIM)]
    gradient = torch.stack(rows, 1)
    length = vectors.norm(dim=1)[:, None, None]
    unit, eye = vectors / length[:, 0], torch.eye(DIM, dtype=vectors.dtype)
    expected = torch.where(length > 1, (eye - unit[:, :, None] * unit[:, None, :]) / length, eye)
    return -(gradient - expected).abs().amax((1, 2))


def _layers(cases: int, generator: torch.Generator) -> list[Statement]:
    exact, schur = [], []
    for case in range(cases):
        layer = nn.Linear(6, 5, bias=False).double()
        with torch.no_grad():
            layer.weight.normal_(generator=generator)
            if case % 2:
                layer.weight.abs_()  # without signs that cancel, Schur's bound is nearly reached
        norm, weight = operator_norm(layer, (6,), generator), layer.weight.detach()
        exact.append(-abs(norm - float(torch.linalg.matrix_norm(weight, 2))) / norm)
        schur.append(max(float(weight.abs().sum(side).max()) for side in (0, 1)) - norm)
    return [
        tried(
            "power",
            "power iteration gives the largest singular value",
            f"{SOURCE}, the tool that follows",
            torch.tensor(exact),
            rounding=1e-5,
        ),
        tried(
            "Schur",
            "row and column sums ≤ ω: operator norm ≤ ω",
            f"{SOURCE}, in place of lemma 4.1",
            torch.tensor(schur),
        ),
        *_lemma(generator),
    ]


def _lemma(generator: torch.Generator) -> list[Statement]:
    """The two counter-examples to Lemma 4.1."""
    ones = nn.Linear(4, 1, bias=False)
    nn.init.ones_(ones.weight)
    pair = torch.ones(2, dtype=torch.float64)
    lemma = f"{SOURCE}, lemma 4.1"
    return [
        tried(
            "columns",
            "column sums ≤ ω: operator norm ≤ ω",
            lemma,
            torch.tensor([1 - operator_norm(ones, (4,), generator)]),
            expected=False,
            remark="a 1 × 4 layer of ones: column sums 1, norm 2",
        ),
        tried(
            "step",
            "(Σ_j w_j x_j)² ≤ Σ_j w_j² x_j²",
            f"{lemma}, proof",
            (pair * pair).square().sum()[None] - (pair * pair).sum().square(),
            expected=False,
            remark="w = x = (1, 1): 4 > 2",
        ),
    ]


def _pooling(cases: int, generator: torch.Generator) -> list[Statement]:
    left, right = torch.randn(2, cases, 1, 6, 6, generator=generator, dtype=torch.float64)
    disjoint, overlapping = nn.MaxPool2d(2), nn.MaxPool2d(3, stride=2)
    apart = (disjoint(left) - disjoint(right)).flatten(1).norm(dim=1)
    image = torch.zeros(1, 1, 5, 5, dtype=torch.float64)
    image[0, 0, 2, 2] = 1  # the largest of four windows at once, against an empty image
    ratio = overlapping(image).norm()[None]
    claim, source = "maximum pooling is 1-Lipschitz", f"{SOURCE}, sec. 4"
    return [
        tried("pool 2/2", f"{claim}: 2 × 2, stride 2", source, 1 - apart / (left - right).flatten(1).norm(dim=1)),
        tried(
            "pool 3/2",
            f"{claim}: 3 × 3, stride 2",
            source,
            1 - ratio,
            expected=False,
            remark=f"one pixel in four windows: ratio {float(ratio):.0f}",
        ),
    ]


def _network(cases: int, generator: torch.Generator) -> Statement:
    """Conv4 with random weights: pairs of nearby and of unrelated images against the product of its layers."""
    network = Conv4(channels=1, width=8).eval()
    with torch.no_grad():
        for weight in filter(lambda weight: weight.dim() == 4, network.parameters()):
            nn.init.kaiming_normal_(weight, nonlinearity="relu", generator=generator)
    bound = product_of(lipschitz_bound(network, (1, 16, 16), generator))
    left = torch.randn(cases, 1, 16, 16, generator=generator)
    step = torch.randn(left.shape, generator=generator) * torch.logspace(-2, 0, cases)[:, None, None, None]
    with torch.no_grad():
        ratios = (network(left + step) - network(left)).flatten(1).norm(dim=1) / step.flatten(1).norm(dim=1)
    remark = f"bound {bound:.3g}, largest ratio seen {float(ratios.max()):.2g}"
    return tried(
        "network",
        "‖f(x) − f(x′)‖ ≤ Π (layer norms) ‖x − x′‖",
        f"{SOURCE}, sec. 4",
        bound - ratios.double(),
        remark=remark,
    )
