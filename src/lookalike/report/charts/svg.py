"""A chart as SVG. Colours are CSS variables: it follows the page into the dark, and so does the file of its own."""

from importlib.resources import files

from lookalike.report.charts.chart import Chart, Mark, Series
from lookalike.report.charts.ticks import ticks
from lookalike.report.page.markup import Html, element, join, text

WIDTH, HEIGHT = 440, 290
LETTER = 7.0  # width of a character of the labels
LONGEST = 24  # characters of a name along an axis
SHAPES = ("circle", "square", "diamond", "triangle")
DASHES = (None, "7 4", "2 3", "9 3 2 3")


class Frame:
    """Where the axes are, and where a value is between them."""

    def __init__(self, chart: Chart) -> None:
        self.x_axis, self.y_axis = chart.x, chart.y
        widest = max((len(clipped(word)) for _, word in ticks(chart.y)), default=1)
        self.left = 32.0 + LETTER * widest
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


def draw(chart: Chart) -> Html:
    """The chart as an element of a page."""
    frame = Frame(chart)
    parts = [_grid(frame), _legend(chart.series, frame.left)]
    parts += [_series(part, frame) for part in sorted(chart.series, key=lambda part: not part.faint)]
    parts += [_mark(mark, frame) for mark in chart.marks]
    return element(
        "svg", *parts, xmlns="http://www.w3.org/2000/svg", viewBox=f"0 0 {WIDTH} {HEIGHT}", class_="chart", role="img",
        aria_label=f"{chart.title}. {chart.caption}",
    )  # fmt: skip


def standalone(drawing: Html) -> str:
    """The same as a file of its own, with the colours of the page."""
    return drawing.replace(">", f"><style>{text(style())}</style>", 1) + "\n"


def style() -> str:
    """The colours and lines of all charts, as CSS."""
    return files("lookalike.report.charts").joinpath("chart.css").read_text(encoding="utf-8")


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
        wide = 34 + LETTER * len(clipped(part.name))
        if rows[-1] and wide > room:
            rows.append([])
            room = WIDTH - 70.0
        rows[-1].append(part)
        room -= wide
    return rows


def _legend(series: tuple[Series, ...], left: float) -> Html:
    parts = []
    for number, row in enumerate(legend_rows(series)):
        x, y = left, 14.0 + 20 * number
        for part in row:
            if part.style in ("dots", "intervals"):
                parts.append(_dot(x + 11, y, part.colour))
            else:
                parts.append(_path([(x, y), (x + 22, y)], part))
            name = clipped(part.name)
            parts.append(element("text", name, x=f"{x + 28:.1f}", y=f"{y + 4:.1f}"))
            x += 34 + LETTER * len(name) + 6
    return join(*parts)


def _grid(frame: Frame) -> Html:
    lines, words = [], []
    for value, word in ticks(frame.y_axis):
        y = frame.y(value)
        lines.append(_line(frame.left, y, frame.right, y, "grid"))
        words.append(element("text", clipped(word), x=f"{frame.left - 7:.1f}", y=f"{y + 4:.1f}", text_anchor="end"))
    for value, word in ticks(frame.x_axis):
        x = frame.x(value)
        lines.append(_line(x, frame.top, x, frame.bottom, "grid"))
        words.append(element("text", word, x=f"{x:.1f}", y=f"{frame.bottom + 18:.1f}", text_anchor="middle"))
    middle = (frame.top + frame.bottom) / 2
    across, along = (frame.left + frame.right) / 2, f"rotate(-90 13 {middle:.1f})"
    words.append(element("text", frame.x_axis.label, x=f"{across:.1f}", y=HEIGHT - 9, text_anchor="middle"))
    words.append(element("text", frame.y_axis.label, x=13, y=f"{middle:.1f}", text_anchor="middle", transform=along))
    return join(*lines, _line(frame.left, frame.bottom, frame.right, frame.bottom, "axis"), *words)


def _series(series: Series, frame: Frame) -> Html:
    points = frame.points(series.x, series.y)
    if series.style == "dots":
        return join(*(_dot(x, y, series.colour) for x, y in points))
    if series.style == "intervals":
        return join(*_whiskers(series, frame), *(_dot(x, y, series.colour) for x, y in points))
    if series.style == "band":
        return _polygon(frame.points(series.x, series.high) + frame.points(series.x, series.low)[::-1], series.colour)
    if series.style == "line":
        return _path(points, series)
    floor = frame.y(frame.y_axis.low)
    below = [(points[0][0], floor), *points, (points[-1][0], floor)]
    return join(_polygon(below, series.colour), _path(points, series))


def _whiskers(series: Series, frame: Frame) -> list[Html]:
    lines, kind = [], f"s{series.colour} whisker"
    for low, high, y in zip(series.low, series.high, series.y, strict=True):
        left, right, level = frame.x(low), frame.x(high), frame.y(y)
        lines.append(_line(left, level, right, level, kind))
        lines += [_line(end, level - 5, end, level + 5, kind) for end in (left, right)]
    return lines


def _mark(mark: Mark, frame: Frame) -> Html:
    if mark.axis == "y":
        y = frame.y(mark.at)
        line = _line(frame.left, y, frame.right, y, "mark")
        return join(line, _label(mark.text, frame.right - 4, y - 5, "end"))
    x = frame.x(mark.at)
    late = x > (frame.left + frame.right) / 2
    anchor, where = ("end", x - 5) if late else ("start", x + 5)
    line = _line(x, frame.top, x, frame.bottom, "mark")
    return join(line, _label(mark.text, where, frame.top + 13, anchor))


def _label(words: str, x: float, y: float, anchor: str) -> Html:
    return element("text", words, x=f"{x:.1f}", y=f"{y:.1f}", text_anchor=anchor, class_="halo")


def _line(x1: float, y1: float, x2: float, y2: float, kind: str) -> Html:
    return element("line", x1=f"{x1:.1f}", y1=f"{y1:.1f}", x2=f"{x2:.1f}", y2=f"{y2:.1f}", class_=kind)


def _path(points: list[tuple[float, float]], series: Series) -> Html:
    way = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
    kind = f"s{series.colour} path" + (" faint" if series.faint else "")
    return element("path", d=way, class_=kind, stroke_dasharray=DASHES[series.colour % len(DASHES)])


def _polygon(points: list[tuple[float, float]], colour: int) -> Html:
    return element("polygon", points=" ".join(f"{x:.1f},{y:.1f}" for x, y in points), class_=f"f{colour} band")


def _dot(x: float, y: float, colour: int) -> Html:
    """A shape of its own for every colour."""
    shape = SHAPES[colour % len(SHAPES)]
    if shape == "circle":
        return element("circle", cx=f"{x:.1f}", cy=f"{y:.1f}", r=4.5, class_=f"f{colour} dot")
    corners = {
        "square": ((-4, -4), (4, -4), (4, 4), (-4, 4)),
        "diamond": ((0, -5.5), (5.5, 0), (0, 5.5), (-5.5, 0)),
        "triangle": ((0, -5), (5, 4), (-5, 4)),
    }[shape]
    return element(
        "polygon", points=" ".join(f"{x + dx:.1f},{y + dy:.1f}" for dx, dy in corners), class_=f"f{colour} dot"
    )
