"""What a network sees of an image: the evaluation crop, or one of several random crops, the same one each time."""

from dataclasses import asdict, dataclass
from hashlib import blake2b

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from lookalike.data import Augmentation
from lookalike.data.images.augment import apply
from lookalike.data.images.source import Picture
from lookalike.models import Preprocessing
from lookalike.models.preprocess import prepare, scale


@dataclass(frozen=True)
class View:
    """The evaluation crop, or with an `augmentation` the random crop that `number` and `seed` choose for an image.

    The crop depends on the content of the image, not on its row: equal images have equal views in every data set.
    """

    augmentation: Augmentation | None = None
    number: int = 0
    seed: int = 0

    def inputs(self, picture: Picture, digest: bytes, how: Preprocessing) -> Float[Tensor, "1 c h w"]:
        """One `picture`, whose content has this `digest`, as a network's input; `how`: its preprocessing."""
        if self.augmentation is None:
            return prepare([picture.decode()], how)
        generator = torch.Generator().manual_seed(_seed(self.seed, self.number, digest))
        cut = self.augmentation.cut(picture.height, picture.width, generator)
        return scale(apply(picture, cut)[None], how)

    def description(self) -> str:
        """Everything that changes a view, as text."""
        return "centre" if self.augmentation is None else f"{asdict(self.augmentation)} {self.number} {self.seed}"


CENTRE = View()


def _seed(seed: int, number: int, digest: bytes) -> int:
    """63 well-mixed bits: consecutive numbers must not have similar streams."""
    mixed = blake2b(np.array([seed, number], np.int64).tobytes() + digest, digest_size=8).digest()
    return int.from_bytes(mixed, "little") >> 1
