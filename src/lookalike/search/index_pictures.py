"""Pictures as the model of an index sees them: those that it is searched with, and those of its items."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from lookalike.errors import check
from lookalike.geometry import Geometry
from lookalike.image_files import UnreadableError
from lookalike.search.adding.encoding import Encoding
from lookalike.search.asking import Example
from lookalike.search.heat import Why
from lookalike.search.pictures import PictureError, content_of
from lookalike.search.queries import Box, means, pixels_of, placed, views_of
from lookalike.search.stores import Store
from lookalike.search.why import SeenPicture, explained, ready, seen


class IndexPictures:
    """What `encoding`, which gives the model that answers, makes of pictures; `flip`: with their mirror images?"""

    def __init__(self, store: Store, encoding: Callable[[], Encoding]) -> None:
        self.store, self._encoding = store, encoding

    def examples(
        self, queries: Sequence[Any], geometry: Geometry, flip: Callable[[], bool], box: Box | None = None
    ) -> list[Example]:
        """The `queries` as vectors in a `geometry`, and as ids where they are items."""
        result: dict[int, Example] = {}
        images: dict[int, Any] = {}
        for place, query in enumerate(queries):
            if is_vector(query):
                result[place] = placed(np.asarray(query, np.float32)[None], geometry)[0]
            elif self._is_item(query, box):
                result[place] = query
            else:
                images[place] = views_of(pixels_of(query, box), flip())
        if images:
            views = [self._encoding()(view) for view in zip(*images.values(), strict=True)]
            result |= dict(zip(images, means(views, geometry), strict=True))
        return [result[place] for place in range(len(queries))]

    def explaining(self, query: Any, flip: Callable[[], bool], box: Box | None = None) -> Callable[[str], Why]:
        """What the similarity of a query and of items (their ids) is made of; the query is looked at once."""
        looked = cache(partial(self._seen, query, flip, box))
        return lambda item: self._why(looked(), item)

    def _seen(self, query: Any, flip: Callable[[], bool], box: Box | None) -> SeenPicture:
        """A query as the network sees it, place by place."""
        stored = self._is_item(query, box)
        picture = self.of_item(query) if stored else pixels_of(query)
        model = self._encoding().model
        return seen(model, ready(model.preprocessing, picture, box, not stored and flip()))

    def _why(self, query: SeenPicture, item: str) -> Why:
        model = self._encoding().model
        hit = seen(model, ready(model.preprocessing, self.of_item(item)))
        return explained(query, hit, self.store.identity.geometry)

    def of_item(self, item: str) -> Tensor:
        """The picture of an `item` (its id), as it was embedded: 3 × h × w, uint8."""
        items = self.store.items([item])
        check(bool(items), f"there is no item '{item}' in this index")
        if items[0].mapped:
            raise PictureError(
                f"the vector of '{item}' is mapped from that of an earlier model, not made from its picture: "
                "ask why when lookalike upgrade has embedded it"
            )
        content = None
        with suppress(UnreadableError):
            content = content_of(self.store, items[0])
        if content is None:
            raise PictureError(
                f"the picture of '{item}' is missing, or has changed since it was indexed: index it again"
            )
        return pixels_of(content)

    def _is_item(self, query: Any, box: Box | None) -> bool:
        named = isinstance(query, str) and box is None and not Path(query).is_file()
        return named and bool(self.store.items([query]))


def is_vector(query: Any) -> bool:
    return getattr(query, "ndim", None) == 1
