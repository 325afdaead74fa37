"""Where vectors live and how two of them are compared: the only file that knows a distance.

sphere: e = z / ‖z‖. ball: e = z / max(1, ‖z‖), the projection onto the unit ball (Chance Constraints, sec. 4.4).
none: e = z. Half precision is widened to float32 here, and a product is never made in half precision, whatever autocast
says: the last bits of a similarity decide ranks.
"""

import math
from typing import Any, Literal, get_args

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from lookalike.errors import check, unknown

Geometry = Literal["sphere", "ball", "none"]
SATURATION = 1e30  # raw dot products stop here, with gradient 0 beyond
ROUNDING = 8.0  # squared distances below this many units of rounding are rounding


def check_geometry(geometry: Geometry) -> Geometry:
    if geometry not in get_args(Geometry):
        raise unknown("geometry", geometry, get_args(Geometry))
    return geometry


def widen(vectors: Tensor) -> Tensor:
    return vectors.float() if vectors.dtype in (torch.float16, torch.bfloat16) else vectors


def _scaled(vectors: Tensor) -> tuple[Tensor, Tensor]:
    """The rows divided by their largest absolute entry, and that entry: no square over- or underflows afterwards."""
    largest = vectors.detach().abs().amax(1, keepdim=True)
    largest = torch.where(largest > 0, largest, 1.0)
    return vectors / largest, largest


def _root(squares: Tensor) -> Tensor:
    """√x with gradient 0 at 0."""
    positive = squares > 0
    return torch.where(positive, torch.where(positive, squares, 1.0).sqrt(), 0.0)


def norms(vectors: Float[Tensor, "n d"]) -> Float[Tensor, " n"]:
    """‖z‖ per row, exact for norms of 1e-20 and 1e+20 alike; gradient 0 at the zero vector.

    >>> norms(torch.tensor([[3e20, 4e20], [0.0, 0.0]]))
    tensor([5.0000e+20, 0.0000e+00])
    """
    scaled, largest = _scaled(widen(vectors))
    return (_root(scaled.square().sum(1, keepdim=True)) * largest).squeeze(1)


def mean_norm(vectors: Float[Tensor, "n d"], squared: bool = False) -> Float[Tensor, ""]:
    """The mean of ‖z‖ (or of ‖z‖², saturating at 1e30) over the rows: the weight decay of embeddings.

    >>> mean_norm(torch.tensor([[3.0, 4.0], [0.0, 1.0]])), mean_norm(torch.tensor([[3.0, 4.0]]), squared=True)
    (tensor(3.), tensor(25.))
    """
    lengths = norms(vectors)
    if squared:
        lengths = lengths.clamp(max=SATURATION**0.5).square()
    return lengths.sum() / max(1, len(lengths))


class _Sphere(torch.autograd.Function):
    """e = z / ‖z‖, and 0 with gradient 0 for a zero row. A row is first divided by its largest entry, see `_scaled`."""

    @staticmethod
    def forward(ctx: Any, vectors: Tensor) -> Tensor:
        largest = torch.maximum(vectors.amax(1, keepdim=True), vectors.amin(1, keepdim=True).neg_())
        unit = vectors / torch.where(largest > 0, largest, 1.0)
        # the largest entry is now 1, so only a zero row is shorter than 1
        lengths = torch.linalg.vector_norm(unit, dim=1, keepdim=True).clamp_(min=1)
        unit.div_(lengths)
        ctx.save_for_backward(unit, torch.where(largest > 0, 1 / (largest * lengths), 0.0))
        return unit

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        unit, inverse = ctx.saved_tensors
        along = (gradient * unit).sum(1, keepdim=True)
        return torch.addcmul(gradient, unit, along, value=-1).mul_(inverse)


def normalise(vectors: Float[Tensor, "n d"], geometry: Geometry) -> Float[Tensor, "n d"]:
    """The vectors in their geometry. A zero row stays zero, with gradient 0.

    >>> normalise(torch.tensor([[3.0, 4.0], [0.3, 0.4]]), "sphere")
    tensor([[0.6000, 0.8000],
            [0.6000, 0.8000]])
    >>> normalise(torch.tensor([[3.0, 4.0], [0.3, 0.4]]), "ball")
    tensor([[0.6000, 0.8000],
            [0.3000, 0.4000]])
    """
    vectors = widen(vectors)
    if geometry == "none":
        return vectors
    unit: Tensor = _Sphere.apply(vectors)  # type: ignore[no-untyped-call]
    if geometry == "sphere":
        return unit
    return torch.where(norms(vectors.detach())[:, None] > 1, unit, vectors)


def product(rows: Float[Tensor, "*b n d"], columns: Float[Tensor, "*b m d"]) -> Float[Tensor, "*b n m"]:
    """All dot products, in the wider of the two precisions, untouched by autocast."""
    dtype = torch.promote_types(rows.dtype, columns.dtype)
    rows, columns = rows.to(dtype), columns.to(dtype)
    if not torch.is_autocast_enabled(rows.device.type):
        return rows @ columns.mT
    with torch.autocast(rows.device.type, enabled=False):
        return rows @ columns.mT


def _both_ways(gradient: Tensor) -> Tensor:
    """G + Gᵀ; the copy in between is several times faster than adding along columns."""
    return gradient.T.clone(memory_format=torch.contiguous_format).add_(gradient)


class _Gram(torch.autograd.Function):
    """All dot products of vectors with one another: the gradient (G + Gᵀ) E is one product where two sides take two."""

    @staticmethod
    def forward(ctx: Any, vectors: Tensor) -> Tensor:
        ctx.save_for_backward(vectors)
        return vectors @ vectors.T

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        vectors: Tensor = ctx.saved_tensors[0]
        return _both_ways(gradient) @ vectors


class _Saturating(torch.autograd.Function):
    """Dot products of vectors of any length: rows and columns are scaled first, so nothing overflows on the way.

    Without columns, of the rows with one another, as `_Gram`.
    """

    @staticmethod
    def forward(ctx: Any, rows: Tensor, columns: Tensor | None) -> Tensor:
        scaled_rows, row_size = _scaled(rows)
        scaled_columns, column_size = (scaled_rows, row_size) if columns is None else _scaled(columns)
        values = (scaled_rows @ scaled_columns.T).mul_(row_size).mul_(column_size.T)
        values.clamp_(-SATURATION, SATURATION)
        ctx.save_for_backward(rows, columns, values)
        return values

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor | None]:
        rows, columns, values = ctx.saved_tensors
        inside = torch.ops.aten.hardtanh_backward(gradient, values, -SATURATION, SATURATION)  # 0 at the bounds
        if columns is None:
            return _both_ways(inside) @ rows, None
        return inside @ columns, inside.T @ rows


def raw_product(rows: Float[Tensor, "n d"], columns: Float[Tensor, "m d"] | None) -> Float[Tensor, "n m"]:
    """Dot products of vectors of any length (columns None: with one another).

    They saturate at ±1e30 (with gradient 0 beyond) instead of overflowing.
    """
    if columns is rows:
        columns = None  # torch.compile takes no function that is given one tensor twice
    if columns is not None:
        dtype = torch.promote_types(rows.dtype, columns.dtype)
        rows, columns = rows.to(dtype), columns.to(dtype)
    with torch.autocast(rows.device.type, enabled=False):
        result: Tensor = _Saturating.apply(rows, columns)  # type: ignore[no-untyped-call]
    return result


def gram(vectors: Float[Tensor, "n d"]) -> Float[Tensor, "n n"]:
    """All dot products of vectors with one another, untouched by autocast."""
    with torch.autocast(vectors.device.type, enabled=False):
        result: Tensor = _Gram.apply(vectors)  # type: ignore[no-untyped-call]
    return result


def compare(
    rows: Float[Tensor, "n d"], columns: Float[Tensor, "m d"] | None, geometry: Geometry
) -> Float[Tensor, "n m"]:
    """Similarities S = ⟨e_i, e_j⟩ of embeddings with candidates (None: with themselves) in the given geometry."""
    left = normalise(rows, geometry)
    right = None if columns is None else normalise(columns, geometry)
    if geometry == "none":
        return raw_product(left, right)
    return gram(left) if right is None else product(left, right)


def squares(
    rows: Float[Tensor, "n d"], columns: Float[Tensor, "m d"] | None, geometry: Geometry
) -> tuple[Float[Tensor, " n"], Float[Tensor, " m"]] | None:
    """‖e‖² of embeddings and candidates in the given geometry; None on the sphere, where every one is 1."""
    if geometry == "sphere":
        return None
    left = _squares(rows, geometry)
    return left, left if columns is None else _squares(columns, geometry)


def _squares(vectors: Tensor, geometry: Geometry) -> Tensor:
    return norms(normalise(vectors, geometry)).clamp(max=SATURATION**0.5).square()


class _Euclid(torch.autograd.Function):
    """d = √max(d², 0) of d² = a + b − 2S, with gradient 0 where d = 0. Distances within rounding of 0 are 0."""

    @staticmethod
    def forward(ctx: Any, similarities: Tensor, totals: Tensor | float) -> Tensor:
        squares = torch.sub(totals, similarities, alpha=2)
        noise = ROUNDING * torch.finfo(squares.dtype).eps * totals
        if isinstance(noise, float):
            torch.threshold_(squares, noise, 0.0)
        else:
            squares = torch.where(squares > noise, squares, 0.0)
        distances = squares.sqrt_()
        ctx.save_for_backward(distances)
        return distances

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor | None]:
        (distances,) = ctx.saved_tensors
        slope = gradient / torch.nn.functional.threshold(distances, 0.0, torch.inf)  # 0 where d = 0
        return slope.neg(), 0.5 * slope if ctx.needs_input_grad[1] else None


Squares = tuple[Float[Tensor, " n"], Float[Tensor, " m"]] | None


def _totals(lengths: Squares) -> Tensor | float:
    return 2.0 if lengths is None else lengths[0][:, None] + lengths[1]


def distances(similarities: Float[Tensor, "n m"], lengths: Squares = None) -> Float[Tensor, "n m"]:
    """Euclidean distances from similarities: d² = ‖a‖² + ‖b‖² − 2S, on the unit sphere (lengths None) 2 − 2S.

    >>> distances(torch.tensor([[1.0, 0.5, -1.0]]))
    tensor([[0., 1., 2.]])
    """
    result: Tensor = _Euclid.apply(similarities, _totals(lengths))  # type: ignore[no-untyped-call]
    return result


def distances_between(
    rows: Float[Tensor, "n d"], columns: Float[Tensor, "m d"] | None, geometry: Geometry
) -> Float[Tensor, "n m"]:
    """Euclidean distances of embeddings to candidates (None: to one another) in the given geometry."""
    return distances(compare(rows, columns, geometry), squares(rows, columns, geometry))


def squared_distances(similarities: Float[Tensor, "n m"], lengths: Squares = None) -> Float[Tensor, "n m"]:
    """d² from similarities, see `distances`."""
    return (_totals(lengths) - 2 * similarities).clamp(min=0)


def _smallest_exponent(dtype: torch.dtype) -> int:
    """The exponential of anything less is no normal number any more, and up to 40 times slower to compute."""
    return math.ceil(math.log(torch.finfo(dtype).tiny))


def exponentials(exponents: Tensor) -> Tensor:
    """eˣ in place, and 0 where it would be smaller than any normal number."""
    floor = _smallest_exponent(exponents.dtype)
    return torch.threshold_(exponents.clamp_(min=floor).exp_(), 1.5 * math.exp(floor), 0.0)


def log_softmax_sums(values: Tensor, kept: Tensor, scale: float = 1.0) -> tuple[Tensor, Tensor]:
    """log Σ exp(scale · x) over the kept entries of each row, and the share of each entry in it; not differentiable."""
    if not values.shape[-1]:
        return values.sum(-1) - torch.inf, values.clone()  # no column at all: an empty batch
    shifted = torch.where(kept, values, -torch.inf if scale > 0 else torch.inf)
    if scale != 1:
        shifted.mul_(scale)
    peak = shifted.amax(-1, keepdim=True)
    peak = torch.where(peak.isinf(), 0.0, peak)
    weights = exponentials(shifted.sub_(peak))
    total = weights.sum(-1, keepdim=True)
    result = (total.log() + peak).squeeze(-1)
    return result, weights.div_(torch.where(total > 0, total, 1.0))


class _LogSumExp(torch.autograd.Function):
    """log Σ exp over the kept entries of each row; the backward pass reuses the softmax made on the way."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, kept: Tensor, scale: float) -> Tensor:
        result, softmax = log_softmax_sums(values, kept, scale)
        ctx.save_for_backward(softmax)
        ctx.scale = scale
        return result

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        (softmax,) = ctx.saved_tensors
        return softmax * (ctx.scale * gradient)[..., None], None, None


def log_sum_exp(values: Float[Tensor, "*n m"], kept: Bool[Tensor, "..."], scale: float = 1.0) -> Float[Tensor, "*n"]:
    """Stable log Σ exp(scale · x) over the kept entries of each row; −∞ for a row that keeps none, with gradient 0.

    >>> log_sum_exp(torch.tensor([[0.0, 0.0, 9.0], [1.0, 2.0, 3.0]]), torch.tensor([[True, True, False], [False] * 3]))
    tensor([0.6931,   -inf])
    """
    result: Tensor = _LogSumExp.apply(values, kept, scale)  # type: ignore[no-untyped-call]
    return result


class _Weighted(torch.autograd.Function):
    """A value and its gradient, both known."""

    @staticmethod
    def forward(ctx: Any, _: Tensor, value: Tensor, weights: Tensor) -> Tensor:
        ctx.save_for_backward(weights)
        return value.clone()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        (weights,) = ctx.saved_tensors
        return weights * gradient, None, None


def weighted(similarities: Float[Tensor, "n m"], value: Float[Tensor, ""], weights: Float[Tensor, "n m"]) -> Tensor:
    """A loss by its pair weights ∂L/∂S in closed form (General Pair Weighting): no graph over pairs is kept."""
    result: Tensor = _Weighted.apply(similarities, value, weights)  # type: ignore[no-untyped-call]
    return result


def softplus(values: Tensor) -> Tensor:
    """log(1 + e^x), to the last digit of float64 (torch's own default is exact to 2e-9 only)."""
    normal = torch.nn.functional.threshold(values, _smallest_exponent(values.dtype), -torch.inf)
    return torch.nn.functional.softplus(normal, threshold=40)


def mean_active(hinges: Tensor, kept: Tensor) -> Tensor:
    """The mean over the kept entries that are greater than 0, 0 (still attached to the graph) if there are none.

    >>> mean_active(torch.tensor([0.0, 5.0, 9.0]), torch.tensor([True, True, False]))
    tensor(5.)
    """
    active = torch.where(kept, hinges, 0.0)
    return active.sum() / active.count_nonzero().clamp(min=1)


def mean_where(values: Tensor, kept: Tensor) -> Tensor:
    """The mean over the kept entries, 0 (still attached to the graph) if there are none.

    >>> mean_where(torch.tensor([1.0, 5.0, 9.0]), torch.tensor([True, True, False]))
    tensor(3.)
    """
    return torch.where(kept, values, 0.0).sum() / kept.sum().clamp(min=1)


def check_embeddings(embeddings: Tensor, candidates: Tensor | None = None) -> None:
    """Shapes and dtypes of what a loss, miner or regulariser is given."""
    for name, vectors in (("embeddings", embeddings), ("candidates", candidates)):
        if vectors is None:
            continue
        check(vectors.dim() == 2, f"{name} must be a matrix n × d, not of shape {tuple(vectors.shape)}")
        check(vectors.is_floating_point(), f"{name} must be floating point, not {vectors.dtype}: call .float() on them")
    if candidates is not None:
        check(
            candidates.shape[1] == embeddings.shape[1],
            f"candidates have {candidates.shape[1]} dimensions, embeddings {embeddings.shape[1]}: they must agree",
        )
