"""The spectrum: in how many directions does the embedding spread? (Roth et al., ICML 2020; [math F.7])."""

from torch import Tensor

from lookalike.report.charts.chart import Axis, Chart, Series, columns

SMALLEST = 1e-6  # share that is drawn


def spectrum_chart(values: Tensor, rho: float | None) -> Chart | None:
    if len(values) < 2 or float(values.sum()) <= 0:
        return None
    shares = (values / values.sum()).tolist()
    low = SMALLEST if min(shares) < SMALLEST else min(shares) * 0.8
    flatness = "" if rho is None else f"; rho is {rho:.3f}, where 0 is perfectly flat"
    points = [(float(rank), max(low, share)) for rank, share in enumerate(shares, 1)]
    return Chart(
        "spectrum", "Spectrum of the embeddings",
        f"Flatter uses more directions, which helps on unseen classes; a cliff means collapsed dimensions{flatness}.",
        Axis("rank of the singular value", 1.0, float(len(shares))),
        Axis("share of the sum", low, max(shares) * 1.25, log=True),
        (Series("singular values", *columns(points)),),
    )  # fmt: skip
