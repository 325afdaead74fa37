"""An index to look at: drawn products, one of which has names that would be HTML where nobody is careful."""

import csv
import json
import math
from pathlib import Path

from lookalike.models import Model
from lookalike.search import Index
from lookalike.search.calibration.chances import Models
from lookalike.search.calibration.evidence import ITEMS, Rule
from lookalike.search.calibration.thresholds import Calibration
from tests.fixtures.shop import PRODUCTS, draw, photo

SOLD = (0, 1, 4, 9)  # of the drawn products
EACH = 4
HOSTILE = "<img src=x onerror=alert(1)>"
COLUMN = "<b>note</b>"
EVIDENCE = ITEMS + 2  # columns
DENSEST = Rule(6.0, 1.0)
NAMES = [PRODUCTS[product][0] for product in SOLD]


def make_shop(root: Path, model: Model) -> Path:
    """The folder of the index; photos that are not in it lie beside it as query.jpg and so on."""
    table = draw(root / "photos", SOLD, range(EACH))
    with table.open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    file = f"{HOSTILE}.jpg"
    photo(14, 0).save(table.parent / file)
    rows = [{**row, COLUMN: "plain"} for row in rows]
    rows.append(
        {
            **rows[0],
            "path": file,
            "label": HOSTILE,
            "brand": "</script><script>alert(2)</script>",
            "price": "7",
            COLUMN: "\"'><svg onload=alert(3)>",
        }
    )
    with table.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    index = Index.create(root / "shop.index", model)
    index.add(table)
    calibrate(index)
    index.ready()
    index.close()
    for product in SOLD:
        photo(product, 90).save(root / f"{PRODUCTS[product][1]}.jpg")
    return root / "shop.index"


def calibrate(
    index: Index, match: float = 0.999, right: float = 0.999, either: float = 0.999, rule: Rule = DENSEST
) -> None:
    """A calibration that gives every answer the same chances, and calls it sure from 0.9 on, strange below 0.1.

    `right`: that of the label, `either`: that of the label or the next one, where the class is there.
    """
    facts = {"classes": 40, "queries": 90, "items": 17, "generation": 1, "date": "2026-11-16", "source": "index"}
    weights = [
        (*[0.0] * (EVIDENCE + more), math.log(chance / (1 - chance)))
        for more, chance in ((1, match), (0, right), (0, either))
    ]
    models = Models(rule.sharpness, rule.evenness, *weights, line=(1.0, 0.0), unknown=0.1, familiar=-1.0)
    made = Calibration(0.9, 0.9, 0.0, 0.95, (0.9, 1.0), 0.8, curve=((0.9, 0.95, 0.8),), models=models, **facts)
    index.store.documents.write("calibration", json.dumps(made.as_json()))
