"""Images in memory as a data set."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lookalike.data.dataset import ROLES, SPLITS, Dataset
from lookalike.data.images.source import Arrays
from lookalike.data.vocabulary import UNKNOWN, numbered
from lookalike.errors import UserError, check

Names = Sequence[Any] | np.ndarray | Tensor


def arrays(
    images: np.ndarray | Tensor | Sequence[np.ndarray],
    labels: Names,
    *,
    categories: Names | None = None,
    splits: Sequence[str | None] | None = None,
    roles: Sequence[str | None] | None = None,
    groups: Names | None = None,
    name: str = "arrays",
) -> Dataset:
    """`images` in memory, uint8: n × h × w × 3, n × 3 × h × w, n × h × w (grey), or a list; `labels` of any kind.

    `categories`, `splits`, `roles` and `groups` are the other columns of a `Dataset`, `name` is what people call it.

    >>> arrays(np.zeros((2, 5, 4), np.uint8), [7, 7]).summary()
    'arrays: 2 images, 1 classes'
    """
    stack = _stack(images)
    ids, names = numbered(_strings(labels))
    check(bool((ids >= 0).all()), "a label is empty: give every image a label")
    columns: dict[str, Any] = {}
    if categories is not None:
        columns["categories"], columns["category_names"] = numbered(_strings(categories))
    if groups is not None:
        columns["groups"] = numbered(_strings(groups))[0]
    if splits is not None:
        columns["splits"] = positions("split", splits, SPLITS)
    if roles is not None:
        columns["roles"] = positions("role", roles, ROLES)
    return Dataset(name, Arrays(stack, np.arange(len(stack))), ids, names, **columns)


def positions(kind: str, values: Sequence[str | None], names: tuple[str, ...]) -> Tensor:
    """Positions in a fixed list of names; the empty string and None are −1."""
    known: dict[str | None, int] = {"": UNKNOWN, None: UNKNOWN}
    known.update((name, position) for position, name in enumerate(names))
    wrong = sorted({str(value) for value in values if value not in known})
    check(not wrong, f"unknown {kind} '{wrong[0] if wrong else ''}': use {', '.join(names)}")
    return torch.tensor([known[value] for value in values], dtype=torch.int64)


def _strings(column: Names) -> list[str]:
    values = column.tolist() if isinstance(column, np.ndarray | Tensor) else list(column)
    return ["" if value is None else str(value) for value in values]


def _stack(images: np.ndarray | Tensor | Sequence[np.ndarray]) -> np.ndarray | list[np.ndarray]:
    if isinstance(images, Tensor):
        images = images.detach().cpu().numpy()
    if not isinstance(images, np.ndarray):
        return [_one(image, position) for position, image in enumerate(images)]
    check(images.dtype == np.uint8, f"images must be uint8 (0 to 255), not {images.dtype}: scale and convert them")
    if images.ndim == 3:
        return images
    if images.ndim == 4 and images.shape[3] in (1, 3) and images.shape[1] not in (1, 3):
        return images if images.shape[3] == 3 else images[..., 0]
    if images.ndim == 4 and images.shape[1] in (1, 3) and images.shape[3] not in (1, 3):
        return images.transpose(0, 2, 3, 1) if images.shape[1] == 3 else images[:, 0]
    raise UserError(f"images must be n × h × w × 3, n × 3 × h × w or n × h × w, not {images.shape}")


def _one(image: np.ndarray, position: int) -> np.ndarray:
    fits = image.dtype == np.uint8 and (image.ndim == 2 or (image.ndim == 3 and image.shape[2] == 3))
    check(fits, f"image {position} is {image.dtype} of shape {image.shape}: in a list give uint8 of h × w × 3 or h × w")
    return image
