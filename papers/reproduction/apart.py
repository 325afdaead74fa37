"""What moves MAP@R and R@1 apart: how tight the classes are, and the rate of learning."""

from collections.abc import Callable, Iterator

from lookalike.report.charts.chart import Axis, Chart, Series, around
from papers.reproduction.figures import Kept, correlation, shown

LOSSES, TIGHT = "cub_roth_losses", "train:intra_inter"
NOT_NORMALISED = ("Angular", "GenLifted", "NPair")  # lengths take part in their distances
RATES = {
    "cub_rates": ("C1", "C2", "MS", "Triplet"),
    "cub_ccp_rates": ("C1-CCP-L", "C2-CCP-L", "MS-CCP-L", "Triplet-CCP-L"),
}
STEPS = ("3e-05", "0.0001", "0.0003", "0.001", "0.003")
Find = Callable[[str], Kept]


def precision_against_tightness(find: Find) -> Chart | None:
    """A dot for each loss: how much of its R@1 a loss has as MAP@R, against how tight its train classes are."""
    study = find(LOSSES)
    rows = [row for row in study.rows if not row.startswith(NOT_NORMALISED)]
    dots = [(study.mean(row, TIGHT), study.mean(row, "map@r"), study.mean(row, "recall@1")) for row in rows]
    known = [(tight, precise / near, near) for tight, precise, near in dots if tight and precise and near]
    if len(known) < 5:
        return None
    tight, ratios, near = zip(*known, strict=True)
    caption = (
        f"Each dot is one of {len(known)} rows of `{LOSSES}` with normalised embeddings, mean of its runs: "
        f"{_related(tight, ratios)}. R@1 itself does not follow: {_related(tight, near)}."
    )
    title = "MAP@R, as a share of R@1, against how tight the train classes are"
    across = Axis("distance within classes / between classes", *around(tight))
    upright = Axis("MAP@R / R@1 (%)", *around(ratios), percent=True)
    return Chart(
        "precision_against_tightness", title, caption, across, upright, (Series("", tight, ratios, "dots", 0),)
    )


def _related(one: tuple[float, ...], other: tuple[float, ...]) -> str:
    related, low, high = correlation(one, other)
    return f"r = {related:+.2f} [{low:+.2f}, {high:+.2f}]".replace("-", "−")


def rates(find: Find) -> Iterator[str]:
    """R@1 and MAP@R over the rates of learning, with chance constraints and without."""
    if not all(find(name).rows for name in RATES):
        return
    yield f"| R@1 / MAP@R at a rate of | {' | '.join(STEPS)} |"
    yield "|---" * (len(STEPS) + 1) + "|"
    for pair in zip(*RATES.values(), strict=True):
        for name, row in zip(RATES, pair, strict=True):
            yield f"| {row} | {' | '.join(_cell(find(name), f'{row}, lr {step}') for step in STEPS)} |"


def _cell(study: Kept, row: str) -> str:
    values = [(study.mean(row, metric), metric) for metric in ("recall@1", "map@r")]
    return " / ".join(shown(value, metric) for value, metric in values if value is not None)
