"""Round numbers along an axis, and how they are written."""

import math
from collections.abc import Iterable

from lookalike.report.charts.chart import Axis

ABOUT = 5  # ticks on an axis
SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def ticks(axis: Axis) -> list[tuple[float, str]]:
    """Positions along an axis and what is written there.

    >>> ticks(Axis("recall (%)", 0, 1, percent=True))
    [(0.0, '0'), (0.2, '20'), (0.4, '40'), (0.6, '60'), (0.8, '80'), (1.0, '100')]
    >>> [word for _, word in ticks(Axis("K", 1, 100, log=True))]
    ['1', '2', '5', '10', '20', '50', '100']
    """
    if axis.names:
        return [(float(place), name) for place, name in enumerate(axis.names)]
    if axis.log:
        return _decades(axis)
    factor = 100 if axis.percent else 1
    step = _step((axis.high - axis.low) * factor)
    first, last = math.ceil(axis.low * factor / step - 1e-9), math.floor(axis.high * factor / step + 1e-9)
    decimals = max(0, -math.floor(math.log10(step) + 1e-9))
    return [(k * step / factor, _fixed(k * step, decimals)) for k in range(first, last + 1)]


def _fixed(value: float, decimals: int) -> str:
    """With as many decimals as tell neighbours apart."""
    if decimals > 7 or abs(value) >= 1e7:
        return short(value)
    return f"{value:,.{decimals}f}".replace("-", "−") if value else "0"


def _decades(axis: Axis) -> list[tuple[float, str]]:
    """Powers of ten, and 2 and 5 times them where there are few; exponents where the numbers would get long.

    >>> [word for _, word in _decades(Axis("rate", 1e-7, 1, log=True))]
    ['10⁻⁶', '10⁻⁴', '10⁻²', '1']
    """
    decades = math.log10(axis.high / axis.low)
    factors = (1.0,) if decades > 2.1 else (1.0, 2.0, 5.0)
    every = max(1, math.ceil(decades / 6))
    top = math.ceil(math.log10(axis.high) - 1e-9)
    powers = [power for power in range(math.floor(math.log10(axis.low)), top + 1) if (top - power) % every == 0]
    values = [(factor * 10.0**power, power) for power in powers for factor in factors]
    inside = [pair for pair in values if axis.low * (1 - 1e-9) <= pair[0] <= axis.high * (1 + 1e-9)]
    if decades > 4:
        return [(value, f"10{str(power).translate(SUPERSCRIPTS)}" if power else "1") for value, power in inside]
    return [(value, short(value)) for value, _ in inside]


def _step(span: float) -> float:
    """1, 2 or 5 times a power of ten, about a fifth of the span."""
    rough = span / ABOUT
    power = 10.0 ** math.floor(math.log10(rough))
    return power * next(factor for factor, end in ((1, 1.5), (2, 3.5), (5, 7.5), (10, 11)) if rough / power < end)


def short(value: float) -> str:
    """A number as people write it.

    >>> short(0.30000000000000004), short(20000), short(1e-5), short(-2)
    ('0.3', '20,000', '1e-5', '−2')
    """
    if value != 0 and not 1e-4 <= abs(value) < 1e7:
        mantissa, _, exponent = f"{value:.2e}".partition("e")
        words = f"{mantissa.rstrip('0').rstrip('.')}e{int(exponent)}"
    else:
        words = f"{value:,.6f}".rstrip("0").rstrip(".") if value % 1 else f"{value:,.0f}"
        if len(words) > 9:
            words = f"{value:.4g}"
    return words.replace("-", "−", 1) if words.startswith("-") and value else words


def decimals(values: Iterable[float]) -> int:
    """How many decimals, from 2 to 5, tell the values apart; equal ones do not count.

    >>> decimals([0.91, 0.89]), decimals([0.8214, 0.8211, 0.79])
    (2, 4)
    """
    different = {round(value, 5) for value in values}
    enough = (count for count in range(2, 5) if len({round(value, count) for value in different}) == len(different))
    return next(enough, 5)
