"""The map on the page: a canvas the script draws on, its buttons, and the panel that shows one point."""

from lookalike.report.markup import Html, element, join
from lookalike.report.page.page import note
from lookalike.report.run.embedding_map import EmbeddingMap
from lookalike.report.run.record import UnseenImages

BUTTONS = (("in", "+", "Zoom in"), ("out", "−", "Zoom out"), ("reset", "whole", "Whole map"))


def map_view(shown: EmbeddingMap, test: UnseenImages, pictured: bool) -> Html:
    some = len(shown.rows) < len(test.labels)
    which = f"{len(shown.rows):,} of {len(test.labels):,} images" if some else "All images"
    words = f"{which}, placed by {shown.method} so that near points are similar; distances across the map mean little."
    options = [("state", "nearest neighbour right or wrong"), *([("category", "category")] if test.categories else [])]
    choose = element("select", *(element("option", name, value=value) for value, name in options), id="map-colour")
    buttons = [
        element("button", sign, type="button", id=f"map-{name}", aria_label=words) for name, sign, words in BUTTONS
    ]
    canvas = element(
        "canvas", "The map is drawn by a script; figures/map.svg shows it without one.", id="map-canvas", tabindex="0",
        role="img", aria_label=f"Map of the embedding by {shown.method}. Arrow keys go from image to image.",
        aria_describedby="map-panel",
    )  # fmt: skip
    hint = "Zoom in to see the images themselves." if pictured else "Point at a dot to see its class."
    caption = element(
        "figcaption", element("strong", "Map of the embedding"), " Tight, separate islands are classes the model tells "
        f"apart, mixed ones it confuses. {hint} Wheel, pinch or buttons zoom; drag moves.",
    )  # fmt: skip
    return join(
        note(words),
        element(
            "figure",
            element("div", element("label", "Colour by ", choose), element("span", *buttons), class_="tools"),
            element("div", canvas, element("div", id="map-panel", aria_live="polite"), class_="map"),
            element("div", id="map-legend"),
            element("p", f"→ first {shown.method} axis, ↑ second", class_="axes"), caption, class_="wide",
            id="figure-map",
        ),
    )  # fmt: skip
