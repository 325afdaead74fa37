"""A small shop of drawn products, for the pictures of docs/serve.md and for the tests of the page.

Sixteen products of eight kinds, each seen from a few sides on different grounds; `shop.csv` names their columns.
"""

import csv
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageDraw, ImageFilter

SIDE, FINE = 320, 2  # pixels of a photo; how much finer it is drawn
Colour = tuple[int, int, int]
GROUNDS: Sequence[Colour] = ((238, 234, 227), (226, 232, 236), (240, 230, 222), (229, 235, 226), (235, 231, 238))
# name, kind, colour, its words, brand, price
PRODUCTS = (
    ("Alva mug", "mug", (201, 84, 60), "red", "Norrland", 14),
    ("Tide mug", "mug", (58, 108, 158), "blue", "Haven", 12),
    ("Moss bottle", "bottle", (74, 124, 89), "green", "Norrland", 24),
    ("Amber bottle", "bottle", (206, 141, 52), "yellow", "Sol & Co", 22),
    ("Dome lamp", "lamp", (226, 178, 62), "yellow", "Sol & Co", 89),
    ("Night lamp", "lamp", (52, 60, 88), "blue", "Haven", 95),
    ("Reed vase", "vase", (139, 158, 132), "green", "Norrland", 38),
    ("Rosa vase", "vase", (214, 140, 148), "red", "Sol & Co", 42),
    ("Oak chair", "chair", (172, 122, 76), "brown", "Norrland", 149),
    ("Ink chair", "chair", (60, 64, 72), "black", "Haven", 165),
    ("Hour clock", "clock", (236, 236, 232), "white", "Haven", 54),
    ("Ember clock", "clock", (190, 72, 54), "red", "Sol & Co", 49),
    ("Slope bowl", "bowl", (92, 142, 152), "blue", "Haven", 28),
    ("Clay bowl", "bowl", (184, 106, 72), "brown", "Sol & Co", 26),
    ("Fern cushion", "cushion", (96, 138, 88), "green", "Norrland", 32),
    ("Dusk cushion", "cushion", (128, 100, 150), "violet", "Haven", 34),
)


class Pen:
    """Draws `FINE` times as large as it is told to, so that edges are smooth when the drawing is reduced."""

    def __init__(self, image: Image.Image) -> None:
        self._draw = ImageDraw.Draw(image)

    def __getattr__(self, shape: str) -> Callable[..., None]:
        def draw(places: Any, *numbers: float, **style: Any) -> None:
            if "width" in style:
                style["width"] *= FINE
            larger = (np.array(places) * FINE).ravel().tolist()
            scaled = numbers if shape in ("arc", "pieslice") else [number * FINE for number in numbers]
            getattr(self._draw, shape)(larger, *scaled, **style)

        return draw


def shade(colour: Colour, by: float) -> Colour:
    """Lighter above 0, darker below."""
    towards = 255 if by > 0 else 0
    return tuple(round(value + (towards - value) * abs(by)) for value in colour)  # type: ignore[return-value]


def mug(pen: Pen, c: Colour) -> None:
    pen.ellipse((195, 125, 270, 215), outline=shade(c, -0.2), width=17)
    pen.rounded_rectangle((80, 85, 225, 250), 26, fill=c)
    pen.rounded_rectangle((92, 105, 112, 235), 10, fill=shade(c, 0.25))
    pen.ellipse((80, 68, 225, 108), fill=shade(c, 0.15))
    pen.ellipse((94, 75, 211, 101), fill=shade(c, -0.55))


def bottle(pen: Pen, c: Colour) -> None:
    pen.rounded_rectangle((138, 38, 182, 80), 7, fill=shade(c, -0.45))
    pen.polygon([(143, 76), (177, 76), (210, 130), (110, 130)], fill=shade(c, 0.08))
    pen.rounded_rectangle((110, 115, 210, 280), 20, fill=c)
    pen.rectangle((110, 170, 210, 228), fill=(246, 242, 234))
    pen.rectangle((126, 190, 194, 197), fill=shade(c, -0.3))
    pen.rounded_rectangle((120, 125, 132, 270), 6, fill=shade(c, 0.35))


def lamp(pen: Pen, c: Colour) -> None:
    pen.rectangle((153, 150, 167, 262), fill=(92, 84, 76))
    pen.ellipse((105, 250, 215, 280), fill=(72, 66, 60))
    pen.polygon([(122, 60), (198, 60), (252, 165), (68, 165)], fill=c)
    pen.polygon([(122, 60), (140, 60), (112, 165), (68, 165)], fill=shade(c, 0.3))
    pen.ellipse((68, 150, 252, 180), fill=shade(c, 0.55))


def vase(pen: Pen, c: Colour) -> None:
    for x, y in ((120, 30), (160, 14), (202, 34)):
        pen.line((160, 130, x, y + 14), fill=(96, 116, 78), width=5)
        pen.ellipse((x - 15, y - 4, x + 15, y + 26), fill=(232, 206, 160))
    pen.rectangle((138, 110, 182, 152), fill=shade(c, -0.12))
    pen.ellipse((130, 101, 190, 121), fill=shade(c, -0.4))
    pen.ellipse((95, 135, 225, 286), fill=c)
    pen.ellipse((112, 158, 142, 240), fill=shade(c, 0.3))


def chair(pen: Pen, c: Colour) -> None:
    for x0, x1 in ((112, 98), (208, 222)):
        pen.line((x0, 190, x1, 284), fill=shade(c, -0.35), width=13)
    pen.rounded_rectangle((98, 40, 222, 150), 24, fill=c)
    pen.rounded_rectangle((118, 60, 202, 132), 16, fill=shade(c, 0.22))
    pen.rectangle((112, 145, 126, 185), fill=shade(c, -0.25))
    pen.rectangle((194, 145, 208, 185), fill=shade(c, -0.25))
    pen.rounded_rectangle((84, 174, 236, 206), 14, fill=shade(c, -0.1))


def clock(pen: Pen, c: Colour) -> None:
    pen.ellipse((58, 58, 262, 262), fill=shade(c, -0.35))
    pen.ellipse((70, 70, 250, 250), fill=c)
    mark = shade(c, -0.75) if sum(c) > 450 else (248, 244, 236)
    for hour in range(12):
        x, y = math.sin(hour * math.pi / 6), -math.cos(hour * math.pi / 6)
        pen.ellipse((160 + 74 * x - 5, 160 + 74 * y - 5, 160 + 74 * x + 5, 160 + 74 * y + 5), fill=mark)
    pen.line((160, 160, 160, 102), fill=mark, width=8)
    pen.line((160, 160, 204, 178), fill=mark, width=8)


def bowl(pen: Pen, c: Colour) -> None:
    pen.pieslice((55, 40, 265, 255), 0, 180, fill=c)
    pen.rectangle((125, 246, 195, 264), fill=shade(c, -0.3))
    pen.ellipse((55, 120, 265, 176), fill=shade(c, 0.2))
    pen.ellipse((72, 128, 248, 168), fill=shade(c, -0.4))
    pen.arc((80, 60, 240, 235), 100, 150, fill=shade(c, 0.35), width=9)


def cushion(pen: Pen, c: Colour) -> None:
    pen.rounded_rectangle((62, 74, 258, 250), 46, fill=c)
    for place in range(4):
        pen.line((92 + 45 * place, 92, 92 + 45 * place, 232), fill=shade(c, 0.28), width=9)
    pen.rounded_rectangle((62, 74, 258, 250), 46, outline=shade(c, -0.25), width=6)


DRAWERS: dict[str, Callable[[Pen, Colour], None]] = {
    "mug": mug, "bottle": bottle, "lamp": lamp, "vase": vase,
    "chair": chair, "clock": clock, "bowl": bowl, "cushion": cushion,
}  # fmt: skip


def photo(product: int, number: int) -> Image.Image:
    """A product, turned, moved and lit a little differently each time."""
    _, kind, colour, *_ = PRODUCTS[product]
    chance = np.random.default_rng([product, number])
    large = Image.new("RGBA", (SIDE * FINE, SIDE * FINE))
    DRAWERS[kind](Pen(large), colour)
    turned = large.rotate(float(chance.uniform(-14, 14)), Image.Resampling.BICUBIC)
    size = int(SIDE * chance.uniform(0.78, 1.0))
    layer = turned.resize((size, size), Image.Resampling.LANCZOS)
    ground = GROUNDS[int(chance.integers(len(GROUNDS)))]
    fall = np.linspace(1.03, 0.9, SIDE)[:, None, None] * chance.uniform(0.96, 1.02)
    image = Image.fromarray(np.clip(np.broadcast_to(ground, (SIDE, SIDE, 3)) * fall, 0, 255).astype(np.uint8))
    place = tuple(int((SIDE - size) / 2 + shift) for shift in chance.uniform(-8, 8, 2))
    shadow = Image.new("RGBA", layer.size, (40, 30, 20, 0))
    shadow.putalpha(layer.getchannel("A").point(lambda value: value * 0.35).filter(ImageFilter.GaussianBlur(9)))
    image.paste(shadow, (place[0] + 9, place[1] + 12), shadow)
    image.paste(layer, place, layer)
    return image


def draw(folder: Path, products: Sequence[int], photos: Sequence[int]) -> Path:
    """Photos of products in `folder`, and the table that `lookalike index` reads."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = []
    for product in products:
        name, kind, _, colour, brand, price = PRODUCTS[product]
        for number in photos:
            file = f"{name.lower().replace(' ', '-')}-{number}.jpg"
            photo(product, number).save(folder / file, quality=88)
            rows.append({"path": file, "label": name, "kind": kind, "brand": brand, "colour": colour, "price": price})
    table = folder / "shop.csv"
    with table.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return table
