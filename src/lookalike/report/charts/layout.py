"""Where everything of a chart stands: grid, legend, series, marks and names. Any pen draws it."""

from lookalike.report.charts.chart import Chart, ReferenceLine, Series
from lookalike.report.charts.drawing import SOLID, Anchor, Dash, Drawing, Pen, Points
from lookalike.report.charts.ticks import ticks

WIDTH, HEIGHT = 440, 290
LETTER = 7.0  # width of a character of the labels
LONGEST = 24  # characters of a name along an axis
LEGEND = 44  # characters of a name in the legend
MANY = 200  # points that are drawn as small dots
DASHES: tuple[Dash, ...] = (SOLID, (7, 4), (2, 3), (9, 3, 2, 3))
MARK_DASH: Dash = (4, 3)


class Frame:
    """Where the axes are, and where a value is between them."""

    def __init__(self, chart: Chart) -> None:
        self.x_axis, self.y_axis = chart.x, chart.y
        widest = max((len(clipped(word)) for _, word in ticks(chart.y)), default=1)
        self.left = (32.0 if chart.y.label else 14.0) + LETTER * widest
        self.top = 14.0 + 20.0 * len(legend_rows(chart.series))
        self.right, self.bottom = WIDTH - 16.0, HEIGHT - 48.0

    def x(self, value: float) -> float:
        return self.left + (self.right - self.left) * self.x_axis.share(value)

    def y(self, value: float) -> float:
        share = self.y_axis.share(value)
        # a list is read from the top, a quantity from the bottom
        return self.top + (self.bottom - self.top) * (share if self.y_axis.names else 1 - share)

    def points(self, xs: tuple[float, ...], ys: tuple[float, ...]) -> list[tuple[float, float]]:
        return [(self.x(x), self.y(y)) for x, y in zip(xs, ys, strict=True)]


def drawing(chart: Chart) -> Drawing:
    return Drawing(WIDTH, HEIGHT, f"{chart.title}. {chart.caption}", lambda pen: paint(chart, pen))


def paint(chart: Chart, pen: Pen) -> None:
    frame = Frame(chart)
    _grid(frame, pen)
    _legend(chart.series, frame.left, pen)
    for part in sorted(chart.series, key=lambda part: not part.faint):
        _series(part, frame, pen)
    for mark in chart.marks:
        _mark(mark, frame, pen)
    _names(chart.series, frame, pen)


def clipped(word: str, longest: int = LONGEST) -> str:
    return word if len(word) <= longest else word[: longest - 1] + "…"


def legend_rows(series: tuple[Series, ...]) -> list[list[Series]]:
    """Named series in rows that fit; a single one needs no legend."""
    named = [part for part in series if part.name and not part.faint]
    if len(named) < 2:
        return []
    rows: list[list[Series]] = [[]]
    room = WIDTH - 70.0
    for part in named:
        wide = _legend_width(part)
        if rows[-1] and wide > room:
            rows.append([])
            room = WIDTH - 70.0
        rows[-1].append(part)
        room -= wide
    return rows


def _legend_width(series: Series) -> float:
    return 36 + LETTER * len(clipped(series.name, LEGEND))


def _legend(series: tuple[Series, ...], left: float, pen: Pen) -> None:
    for number, row in enumerate(legend_rows(series)):
        x, y = left, 14.0 + 20 * number
        for part in row:
            if part.style in ("dots", "intervals"):
                pen.dot(x + 11, y, part.colour)
            else:
                _line([(x, y), (x + 22, y)], part, pen)
            pen.text(clipped(part.name, LEGEND), x + 28, y + 4)
            x += _legend_width(part)


def _grid(frame: Frame, pen: Pen) -> None:
    for value, word in ticks(frame.y_axis):
        y = frame.y(value)
        pen.line([(frame.left, y), (frame.right, y)], "grid")
        pen.text(clipped(word), frame.left - 7, y + 4, "end")
    for value, word in ticks(frame.x_axis):
        x = frame.x(value)
        pen.line([(x, frame.top), (x, frame.bottom)], "grid")
        pen.text(word, x, frame.bottom + 18, "middle")
    pen.line([(frame.left, frame.bottom), (frame.right, frame.bottom)], "axis")
    pen.text(frame.x_axis.label, (frame.left + frame.right) / 2, HEIGHT - 9, "middle")
    if frame.y_axis.label:
        pen.text(frame.y_axis.label, 13, (frame.top + frame.bottom) / 2, "middle", upwards=True)


def _line(points: Points, series: Series, pen: Pen) -> None:
    if series.faint:
        pen.line(points, "path faint", series.colour)
    else:
        pen.line(points, "path", series.colour, DASHES[series.colour % len(DASHES)])


def _series(series: Series, frame: Frame, pen: Pen) -> None:
    points = frame.points(series.x, series.y)
    if series.style == "band":
        edges = frame.points(series.x, series.high) + frame.points(series.x, series.low)[::-1]
        pen.area(edges, series.colour)
        return
    if series.style == "area":
        floor = frame.y(frame.y_axis.low)
        pen.area([(points[0][0], floor), *points, (points[-1][0], floor)], series.colour)
    if series.style in ("line", "area"):
        _line(points, series, pen)
        return
    if series.style == "intervals":
        _whiskers(series, frame, pen)
    names = series.names or ("",) * len(points)
    size = 0.5 if len(points) > MANY else 1.0
    for (x, y), name in zip(points, names, strict=True):
        pen.dot(x, y, series.colour, size, name)


def _whiskers(series: Series, frame: Frame, pen: Pen) -> None:
    for low, high, y in zip(series.low, series.high, series.y, strict=True):
        left, right, level = frame.x(low), frame.x(high), frame.y(y)
        pen.line([(left, level), (right, level)], "whisker", series.colour)
        for end in (left, right):
            pen.line([(end, level - 5), (end, level + 5)], "whisker", series.colour)


def _mark(mark: ReferenceLine, frame: Frame, pen: Pen) -> None:
    if mark.axis == "y":
        y = frame.y(mark.at)
        pen.line([(frame.left, y), (frame.right, y)], "mark", dash=MARK_DASH)
        pen.text(mark.text, frame.right - 4, y - 5, "end", "halo")
        return
    x = frame.x(mark.at)
    pen.line([(x, frame.top), (x, frame.bottom)], "mark", dash=MARK_DASH)
    if x > (frame.left + frame.right) / 2:
        pen.text(mark.text, x - 5, frame.top + 13, "end", "halo")
    else:
        pen.text(mark.text, x + 5, frame.top + 13, "start", "halo")


def _names(series: tuple[Series, ...], frame: Frame, pen: Pen) -> None:
    """The names of points, each beside its own where it covers neither another name nor another point."""
    named = [
        (*point, name)
        for part in series
        if part.names
        for point, name in zip(frame.points(part.x, part.y), part.names, strict=True)
    ]
    taken = [(x - 6, y - 6, x + 6, y + 6) for x, y, _ in named]
    for x, y, name in named:
        word = clipped(name)
        wide = LETTER * len(word)
        places: list[tuple[float, float, Anchor, float]] = [
            (x + 9, y + 4, "start", x + 9),
            (x - 9, y + 4, "end", x - 9 - wide),
            (x, y - 10, "middle", x - wide / 2),
            (x, y + 19, "middle", x - wide / 2),
        ]
        for at, base, anchor, left in places:
            box = (left, base - 11, left + wide, base + 3)
            inside = frame.left <= box[0] and box[2] <= WIDTH and frame.top <= box[1] and box[3] <= frame.bottom
            if inside and not any(_overlap(box, other) for other in taken):
                pen.text(word, at, base, anchor, "halo")
                taken.append(box)
                break


Box = tuple[float, float, float, float]


def _overlap(one: Box, other: Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]
