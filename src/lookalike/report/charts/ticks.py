"""Round numbers along an axis, and how they are written."""

import math

from lookalike.report.charts.chart import Axis

WANTED = 5


def ticks(axis: Axis) -> list[tuple[float, str]]:
    """Positions and words along an axis.

    >>> ticks(Axis("recall (%)", 0, 1, percent=True))
    [(0.0, '0'), (0.2, '20'), (0.4, '40'), (0.6, '60'), (0.8, '80'), (1.0, '100')]
    >>> ticks(Axis("K", 1, 100, log=True))
    [(1.0, '1'), (10.0, '10'), (100.0, '100')]
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
    decades = math.log10(axis.high / axis.low)
    factors = (1.0,) if decades > 1.9 else (1.0, 2.0, 5.0)
    every = max(1, math.ceil(decades / 6))
    powers = range(math.floor(math.log10(axis.low)), math.ceil(math.log10(axis.high)) + 1)
    values = [factor * 10.0**power for power in powers if power % every == 0 for factor in factors]
    inside = [value for value in values if axis.low * (1 - 1e-9) <= value <= axis.high * (1 + 1e-9)]
    return [(value, short(value)) for value in inside]


def _step(span: float) -> float:
    """1, 2 or 5 times a power of ten, about a fifth of the span."""
    rough = span / WANTED
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
