"""A result as JSON text and back, without a bit lost: arrays are packed as base64 of zlib of little-endian float64."""

import base64
import json
import zlib
from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

import numpy as np

from lookalike.errors import UserError
from lookalike.evaluation.engine.ranks import Values

if TYPE_CHECKING:
    from lookalike.evaluation.result import Result

FORMAT = "lookalike result 1"


def pack(values: Values) -> str:
    return base64.b64encode(zlib.compress(values.astype("<f8").tobytes(), 6)).decode()


def unpack(text: str) -> Values:
    return np.frombuffer(zlib.decompress(base64.b64decode(text)), "<f8").astype(np.float64)


def dump(result: "Result") -> str:
    content = {
        "format": FORMAT,
        "metrics": result.values_by_name,
        "facts": result.facts,
        "curves": {
            name: {axis: list(points) for axis, points in curve.items()} for name, curve in result.curves.items()
        },
        "labels": result.labels,
        "categories": result.categories,
        "per_query": {name: pack(values) for name, values in result.per_query.items()},
    } | ({} if result.sets is None else {"sets": result.sets})
    try:
        return json.dumps(content, indent=1)
    except TypeError as error:
        raise UserError(
            f"labels and categories must be numbers, strings or tuples of them to be saved ({error})"
        ) from None


def hashable(value: Any) -> Hashable:
    """JSON knows no tuples: a label that was one comes back as a list."""
    return tuple(hashable(part) for part in value) if isinstance(value, list) else value


def load(text: str) -> dict[str, Any]:
    try:
        content = json.loads(text)
        if not isinstance(content, dict) or content.get("format") != FORMAT:
            raise UserError(f"this is not a saved result: 'format' should be '{FORMAT}'")
        return _parts(content)
    except UserError:
        raise
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, zlib.error) as error:
        reason = f"{type(error).__name__}: {error}"
        raise UserError(f"this is not a saved result, or it is damaged ({reason}): save it again") from None


def _parts(content: dict[str, Any]) -> dict[str, Any]:
    categories, sets = content["categories"], content.get("sets")
    return {
        "values_by_name": content["metrics"],
        "per_query": {name: unpack(packed) for name, packed in content["per_query"].items()},
        "labels": [hashable(label) for label in content["labels"]],
        "facts": content["facts"] | {"confused": [tuple(map(hashable, pair)) for pair in content["facts"]["confused"]]}
        if "confused" in content["facts"]
        else content["facts"],
        "sets": None if sets is None else [[hashable(label) for label in own] for own in sets],
        "categories": None if categories is None else [hashable(value) for value in categories],
        "curves": {
            name: {axis: np.array(points) for axis, points in curve.items()}
            for name, curve in content["curves"].items()
        },
    }
