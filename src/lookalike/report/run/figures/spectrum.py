"""The spectrum: in how many directions does the embedding spread? (Roth et al., ICML 2020; SPEC F.7)."""

from torch import Tensor

from lookalike.report.charts.chart import Axis, Chart, Series


def spectrum_chart(values: Tensor, rho: float | None) -> Chart | None:
    if len(values) < 2 or float(values.sum()) <= 0:
        return None
    shares = (values / values.sum()).clamp(min=1e-9).tolist()
    low = 10.0**-6 if min(shares) < 1e-6 else min(shares) * 0.8
    told = "" if rho is None else f"; rho {rho:.3f}, 0 is perfectly flat"
    return Chart(
        "spectrum", "Spectrum of the embeddings",
        f"Flatter uses more directions, which helps on unseen classes; a cliff means collapsed dimensions{told}.",
        Axis("singular value (rank)", 1.0, float(len(shares))),
        Axis("share of the sum (no unit)", low, max(shares) * 1.25, log=True),
        (Series("singular values", tuple(float(k) for k in range(1, len(shares) + 1)),
                tuple(max(low, share) for share in shares)),),
    )  # fmt: skip
