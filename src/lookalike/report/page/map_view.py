"""The map on the page: a canvas the script draws on, its buttons, and the panel that shows one point."""

from lookalike.report.page.markup import Html, element, join
from lookalike.report.run.embedding_map import Map
from lookalike.report.run.reading import Unseen


def map_view(found: Map, test: Unseen, pictured: bool) -> Html:
    which = (
        f"{len(found.rows):,} of {len(test.labels):,} images" if len(found.rows) < len(test.labels) else "All images"
    )
    words = f"{which}, placed by {found.method} so that near points are similar; distances across the map mean little."
    options = [("state", "nearest neighbour right or wrong"), *([("category", "category")] if test.categories else [])]
    choose = element("select", *(element("option", name, value=value) for value, name in options), id="map-colour")
    buttons = [
        element("button", sign, type="button", id=f"map-{name}", aria_label=words)
        for name, sign, words in (("in", "+", "Zoom in"), ("out", "−", "Zoom out"), ("reset", "whole", "Whole map"))
    ]
    canvas = element(
        "canvas", "The map is drawn by a script; figures/map.svg shows it without.", id="map-canvas", tabindex="0",
        role="img", aria_label=f"Map of the embedding by {found.method}. Arrow keys go from image to image.",
        aria_describedby="map-panel",
    )  # fmt: skip
    hint = "Zoom in to see the images themselves." if pictured else "Point at a dot to see its class."
    caption = element(
        "figcaption", element("strong", "Map of the embedding"), " Tight, separate islands are classes the model tells "
        f"apart, mixed ones it confuses. {hint} Wheel, pinch or buttons zoom; drag moves.",
    )  # fmt: skip
    axes = (element("p", f"→ first {found.method} axis (no unit), ↑ second", class_="axes"),)
    return join(
        element("p", words, class_="note"),
        element(
            "figure",
            element("div", element("label", "Colour by ", choose), element("span", *buttons), class_="tools"),
            element("div", canvas, element("div", id="map-panel", aria_live="polite"), class_="map"),
            element("div", id="map-legend"), *axes, caption, class_="wide", id="figure-map",
        ),
    )  # fmt: skip
