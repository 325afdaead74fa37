"""A model that embeds in another process, as an index's own does."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from lookalike.models import Model
from lookalike.models.backends import Backend
from lookalike.search.items import Vectors


@dataclass
class Encoding:
    """`model` computed by the backend called `name`: one and the same in all processes gives the same bits."""

    model: Model
    name: str

    @cached_property
    def backend(self) -> Backend:
        return self.model.backend(self.name)  # type: ignore[arg-type]

    def __call__(self, images: Sequence[Any]) -> Vectors:
        return np.asarray(self.model.encode(images, backend=self.backend).numpy(), np.float32)
