"""Where vectors live and how two of them are compared: the only file that knows a distance.

sphere: e = z / ‖z‖. ball: e = z / max(1, ‖z‖), the projection onto the unit ball (Chance Constraints, sec. 4.4).
none: e = z. Half precision is widened to float32 here, and a product is never computed in half precision, whatever
autocast says: the last bits of a similarity decide ranks.
"""

from typing import Any, Literal, get_args

import torch
from jaxtyping import Float
from torch import Tensor

from lookalike.errors import unknown

Geometry = Literal["sphere", "ball", "none"]
HALF = (torch.float16, torch.bfloat16)
SHORTEST = 1e-24  # rows shorter than this have the gradient of this length
SATURATION = 1e30  # raw dot products stop here, with gradient 0 beyond
ROUNDING = 8.0  # squared distances below this many units of rounding are rounding


def check_geometry(geometry: Geometry) -> Geometry:
    if geometry not in get_args(Geometry):
        raise unknown("geometry", geometry, get_args(Geometry))
    return geometry


class _Widened(torch.autograd.Function):
    """Half precision as float32; a gradient beyond what half precision holds ends at its largest number."""

    @staticmethod
    def forward(ctx: Any, vectors: Tensor) -> Tensor:
        ctx.dtype = vectors.dtype
        return vectors.float()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        largest = torch.finfo(ctx.dtype).max
        return gradient.clamp(-largest, largest).to(ctx.dtype)


class _Sphere(torch.autograd.Function):
    """e = z / ‖z‖, and 0 with gradient 0 for a zero row; and ‖z‖, n × 1, without a gradient.

    A row is first divided by its largest entry: then no square over- or underflows.
    """

    @staticmethod
    def forward(ctx: Any, vectors: Tensor) -> tuple[Tensor, Tensor]:
        ctx.set_materialize_grads(False)
        largest = torch.maximum(vectors.amax(1, keepdim=True), vectors.amin(1, keepdim=True).neg_())
        unit = vectors / torch.where(largest > 0, largest, 1.0)
        # the largest entry is now 1, so only a zero row is shorter than 1
        lengths = torch.linalg.vector_norm(unit, dim=1, keepdim=True).clamp_(min=1)
        unit.div_(lengths)
        # bounded: 1 / length of the shortest rows is infinite, and 0 times that would be NaN
        lengths = largest * lengths
        inverse = torch.where(largest > 0, 1 / lengths, 0.0).clamp_(max=1 / SHORTEST)
        ctx.save_for_backward(unit, inverse)
        ctx.mark_non_differentiable(lengths)
        return unit, lengths

    @staticmethod
    def backward(ctx: Any, gradient: Tensor | None, _: None) -> Tensor | None:
        if gradient is None:
            return None
        unit, inverse = ctx.saved_tensors
        along = (gradient * unit).sum(1, keepdim=True)
        return torch.addcmul(gradient, unit, along, value=-1).mul_(inverse)


def normalise(vectors: Float[Tensor, "n d"], geometry: Geometry) -> Float[Tensor, "n d"]:
    """The vectors in their geometry, half precision widened. A zero row stays zero, with gradient 0.

    >>> normalise(torch.tensor([[3.0, 4.0], [0.3, 0.4]]), "sphere")
    tensor([[0.6000, 0.8000],
            [0.6000, 0.8000]])
    >>> normalise(torch.tensor([[3.0, 4.0], [0.3, 0.4]]), "ball")
    tensor([[0.6000, 0.8000],
            [0.3000, 0.4000]])
    """
    if vectors.dtype in HALF:
        vectors = _Widened.apply(vectors)  # type: ignore[no-untyped-call]
    if geometry == "none":
        return vectors
    unit, lengths = _Sphere.apply(vectors)  # type: ignore[no-untyped-call]
    if geometry == "sphere":
        return unit  # type: ignore[no-any-return]
    return torch.where(lengths <= 1, vectors, unit)  # a row that is not finite has no length, and becomes NaN here, too


def norms(vectors: Float[Tensor, "n d"], squared: bool = False) -> Float[Tensor, " n"]:
    """‖z‖ per row, exact for norms of 1e-20 and 1e+20 alike; squared, saturating at 1e30. Gradient 0 for a zero vector.

    >>> norms(torch.tensor([[3e20, 4e20], [0.0, 0.0]]))
    tensor([5.0000e+20, 0.0000e+00])
    """
    vectors = normalise(vectors, "none")
    largest = vectors.detach().abs().amax(1, keepdim=True)
    largest = torch.where(largest > 0, largest, 1.0)
    squares = (vectors / largest).square().sum(1, keepdim=True)
    positive = squares > 0
    roots = torch.where(positive, torch.where(positive, squares, 1.0).sqrt(), 0.0)
    lengths = (roots * largest).squeeze(1)
    return lengths.clamp(max=SATURATION**0.5).square() if squared else lengths


def mean_norm(vectors: Float[Tensor, "n d"], squared: bool = False) -> Float[Tensor, ""]:
    """The mean of ‖z‖ over the rows, 0 without rows; finite wherever every norm is.

    >>> mean_norm(torch.tensor([[2e38], [2e38]]))
    tensor(2.0000e+38)
    """
    return (norms(vectors, squared) / max(1, len(vectors))).sum()


class _Product(torch.autograd.Function):
    """All dot products of rows with columns; without columns, of the rows with one another.

    Of one set with itself the gradient is (G + Gᵀ) E: one product where two sets take two. A saturating product scales
    rows and columns first, so that nothing overflows on the way to its bounds.
    """

    @staticmethod
    def forward(ctx: Any, rows: Tensor, columns: Tensor | None, saturating: bool) -> Tensor:
        others = rows if columns is None else columns
        if not saturating:
            ctx.save_for_backward(rows, columns)
            return rows @ others.T
        row_size, column_size = rows.abs().amax(1, keepdim=True), others.abs().amax(1, keepdim=True)
        row_size = torch.where(row_size > 0, row_size, 1.0)
        column_size = torch.where(column_size > 0, column_size, 1.0)
        values = ((rows / row_size) @ (others / column_size).T).mul_(row_size).mul_(column_size.T)
        values.clamp_(-SATURATION, SATURATION)
        ctx.save_for_backward(rows, columns, values)
        return values

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor | None, None]:
        rows, columns, *saturated = ctx.saved_tensors
        if saturated:  # 0 at the bounds
            gradient = torch.ops.aten.hardtanh_backward(gradient, saturated[0], -SATURATION, SATURATION)
        if columns is not None:
            return gradient @ columns, gradient.T @ rows, None
        # the copy in between is several times faster than adding along columns
        both_ways = gradient.T.clone(memory_format=torch.contiguous_format).add_(gradient)
        return both_ways @ rows, None, None


def compare(
    rows: Float[Tensor, "*b n d"], columns: Float[Tensor, "*b m d"] | None, geometry: Geometry | None
) -> Float[Tensor, "*b n m"]:
    """Similarities S = ⟨e_i, e_j⟩ of embeddings with candidates (None: with themselves) in a geometry.

    Geometry None takes the vectors as they are. Raw vectors ("none") may have any length: their products stop at ±1e30
    (with gradient 0 beyond) instead of overflowing. The wider of two precisions counts, autocast does not.
    """
    if geometry is not None:
        rows, columns = normalise(rows, geometry), None if columns is None else normalise(columns, geometry)
    if columns is not None:
        dtype = torch.promote_types(rows.dtype, columns.dtype)
        rows, columns = rows.to(dtype), columns.to(dtype)
    with torch.autocast(rows.device.type, enabled=False):
        if columns is not None and geometry != "none":
            return rows @ columns.mT
        # torch.compile refuses a function with one tensor as two arguments
        columns = None if columns is rows else columns
        result: Tensor = _Product.apply(rows, columns, geometry == "none")  # type: ignore[no-untyped-call]
    return result


Squares = tuple[Float[Tensor, " n"], Float[Tensor, " m"]] | None


def compare_with_squares(
    rows: Float[Tensor, "n d"], columns: Float[Tensor, "m d"] | None, geometry: Geometry
) -> tuple[Float[Tensor, "n m"], Squares]:
    """What distances are made of: similarities, and ‖e‖² of both sides; None on the sphere, where every one is 1."""
    if geometry == "sphere":
        return compare(rows, columns, geometry), None
    rows, columns = normalise(rows, geometry), None if columns is None else normalise(columns, geometry)
    similarities = compare(rows, columns, "none" if geometry == "none" else None)
    left = norms(rows, squared=True)
    return similarities, (left, left if columns is None else norms(columns, squared=True))


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


def distances(similarities: Float[Tensor, "n m"], lengths: Squares = None) -> Float[Tensor, "n m"]:
    """Euclidean distances from similarities: d² = ‖a‖² + ‖b‖² − 2S, on the unit sphere (lengths None) 2 − 2S.

    >>> distances(torch.tensor([[1.0, 0.5, -1.0]]))
    tensor([[0., 1., 2.]])
    """
    totals = 2.0 if lengths is None else lengths[0][:, None] + lengths[1]
    result: Tensor = _Euclid.apply(similarities, totals)  # type: ignore[no-untyped-call]
    return result


def distances_between(
    rows: Float[Tensor, "n d"], columns: Float[Tensor, "m d"] | None, geometry: Geometry
) -> Float[Tensor, "n m"]:
    """Euclidean distances of embeddings to candidates (None: to one another) in a geometry."""
    return distances(*compare_with_squares(rows, columns, geometry))


def squared_distances(similarities: Float[Tensor, "n m"], lengths: Squares = None) -> Float[Tensor, "n m"]:
    """d² from similarities, see `distances`."""
    totals = 2.0 if lengths is None else lengths[0][:, None] + lengths[1]
    return (totals - 2 * similarities).clamp(min=0)
