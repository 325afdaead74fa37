"""A drawing as SVG. Its colours are CSS variables: it follows the page into dark mode, and so does a separate file."""

from base64 import b64encode
from importlib.resources import files
from io import BytesIO

from lookalike.report.charts.drawing import RADIUS, SOLID, Anchor, Dash, Drawing, Pixels, Points, corners
from lookalike.report.markup import Html, element, text

QUALITY = 72  # of pictures


def draw(drawing: Drawing) -> Html:
    """The drawing as an element of a page."""
    pen = SvgPen()
    drawing.paint(pen)
    return element(
        "svg",
        *pen.parts,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {drawing.width:g} {drawing.height:g}",
        class_="chart",
        role="img",
        aria_label=drawing.title,
    )


def standalone(drawing: Drawing) -> str:
    """The same as the text of a file, with the colours of the page."""
    return draw(drawing).replace(">", f"><style>{text(style())}</style>", 1) + "\n"


def style() -> str:
    """The colours and lines of all charts, as CSS."""
    return files("lookalike.report.charts").joinpath("chart.css").read_text(encoding="utf-8")


def data_address(picture: Pixels) -> str:
    """The picture inside its own address, so that no file is needed."""
    from PIL import Image

    file = BytesIO()
    Image.fromarray(picture).save(file, "WEBP", quality=QUALITY)
    return "data:image/webp;base64," + b64encode(file.getvalue()).decode()


class SvgPen:
    def __init__(self) -> None:
        self.parts: list[Html] = []

    def line(self, points: Points, kind: str, colour: int | None = None, dash: Dash = SOLID) -> None:
        way = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
        ink = "" if colour is None else f"s{colour} "
        self.parts.append(element("path", d=way, class_=ink + kind, stroke_dasharray=_spaced(dash)))

    def area(self, points: Points, colour: int) -> None:
        self.parts.append(element("polygon", points=_pairs(points), class_=f"f{colour} band"))

    def dot(self, x: float, y: float, colour: int, size: float = 1.0, name: str = "") -> None:
        kind, title = f"f{colour} dot", element("title", name) if name else Html()
        shape = corners(x, y, colour, size)
        if shape:
            self.parts.append(element("polygon", title, points=_pairs(shape), class_=kind))
        else:
            self.parts.append(
                element("circle", title, cx=f"{x:.1f}", cy=f"{y:.1f}", r=f"{size * RADIUS:g}", class_=kind)
            )

    def text(
        self, words: str, x: float, y: float, anchor: Anchor = "start", kind: str = "", upwards: bool = False
    ) -> None:
        turn = f"rotate(-90 {x:.1f} {y:.1f})" if upwards else None
        self.parts.append(
            element(
                "text",
                words,
                x=f"{x:.1f}",
                y=f"{y:.1f}",
                text_anchor=None if anchor == "start" else anchor,
                class_=kind or None,
                transform=turn,
            )
        )

    def picture(self, pixels: Pixels, x: float, y: float, side: float) -> None:
        self.parts.append(element("image", href=data_address(pixels), x=x, y=y, width=side, height=side))


def _spaced(dash: Dash) -> str | None:
    return " ".join(f"{length:g}" for length in dash) or None


def _pairs(points: Points) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
