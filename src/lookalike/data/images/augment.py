"""Which part of an image a network sees: random crops for training, the centre for evaluation.

An augmentation looks at the size of an image and returns a `Cut`: numbers only, so that the decoder knows what is
needed before it decodes. The first four presets are those of the protocols [math G.1] to [math G.4]:

- roth: Roth et al., ICML 2020: RandomResizedCrop(224), area .08–1; evaluation: short side 256, centre 224.
- mlrc: Musgrave et al., ECCV 2020, and chance constraints: short side 256, area .16–1 to 227; centre 227 of 256.
- ms: Wang et al., CVPR 2019 (released code): the same numbers as mlrc.
- fastap: Cakir et al., CVPR 2019: warped to 256 × 256, random 224 × 224 of it; evaluation: the centre.

Departs from the papers: chance constraints writes of crops between 40 and 256 pixels; the area range of its code is
used [math ERR-35], after the resize to 256, which its TensorFlow code omits. FastAP does not say where in the 256 the
224 are: at random in training.
"""

import math
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import torch
from jaxtyping import UInt8
from torch import Tensor

from lookalike.data.images.decode import resize
from lookalike.data.images.source import Picture
from lookalike.errors import check, unknown
from lookalike.image_files import LONGEST

TRIES = 10  # random areas and aspects, as in torchvision; then the largest allowed central crop
ASPECT = (3 / 4, 4 / 3)


class Cut(NamedTuple):
    """Resize the whole image to `whole` (height, width), take `box` (top, left, height, width), resize it to `size`."""

    whole: tuple[int, int]
    box: tuple[int, int, int, int]
    size: int
    flip: bool


@dataclass(frozen=True)
class Augmentation:
    """From an image of any size to size × size.

    size: the side of the result, in pixels.
    short_side: first resize so that the shorter side has this many pixels.
    warp: or first resize to a square of this side, whatever the aspect.
    area: then a random part of the area, from … to, resized to the size.
    random: or a crop of that size at a random place; else at the centre.
    flip: how often the image is mirrored, from 0 to 1.

    >>> centre = preset("roth").evaluation
    >>> centre.cut(300, 400, torch.Generator())
    Cut(whole=(256, 341), box=(16, 58, 224, 224), size=224, flip=False)
    """

    size: int
    short_side: int | None = None
    warp: int | None = None
    area: tuple[float, float] | None = None
    random: bool = False
    flip: float = 0.0

    def __post_init__(self) -> None:
        check(self.size > 0, f"size must be positive, not {self.size}")
        check(not (self.short_side and self.warp), "give short_side or warp, not both")
        check(0 <= self.flip <= 1, f"flip is a probability from 0 to 1, not {self.flip}")
        for name, side in (("short_side", self.short_side), ("warp", self.warp)):
            small = side is not None and self.area is None and side < self.size
            check(not small, f"{name} {side} is smaller than the crop of {self.size}: raise {name} or lower size")
        if self.area is not None:
            low, high = self.area
            check(0 < low <= high <= 1, f"area is a range within 0 … 1, not {self.area}")

    def cut(self, height: int, width: int, generator: torch.Generator) -> Cut:
        """The part of an image of `height` × `width` to show, random from `generator`."""
        numbers = torch.rand(4 * TRIES + 1, generator=generator).tolist()
        whole = self._whole(height, width)
        if self.area is not None:
            box = _random_area(*whole, self.area, numbers)
        else:
            box = _square(*whole, self.size, numbers if self.random else None)
        return Cut(whole, box, self.size, numbers[-1] < self.flip)

    def _whole(self, height: int, width: int) -> tuple[int, int]:
        if self.warp is not None:
            return self.warp, self.warp
        side = self.short_side
        if side is None and self.area is None:
            side = max(self.size, min(height, width))  # small images grow until the crop fits
        if side is None:
            return height, width
        longest = LONGEST * side
        if height <= width:
            return side, min(longest, int(side * width / height))
        return min(longest, int(side * height / width)), side


def _random_area(height: int, width: int, area: tuple[float, float], numbers: list[float]) -> tuple[int, int, int, int]:
    low, high = math.log(ASPECT[0]), math.log(ASPECT[1])
    for attempt in range(TRIES):
        share, shape, top, left = numbers[4 * attempt : 4 * attempt + 4]
        target = height * width * (area[0] + share * (area[1] - area[0]))
        aspect = math.exp(low + shape * (high - low))
        crop_width, crop_height = round(math.sqrt(target * aspect)), round(math.sqrt(target / aspect))
        if 0 < crop_width <= width and 0 < crop_height <= height:
            return int(top * (height - crop_height + 1)), int(left * (width - crop_width + 1)), crop_height, crop_width
    crop_height, crop_width = min(height, round(width / ASPECT[0])), min(width, round(height * ASPECT[1]))
    return (height - crop_height) // 2, (width - crop_width) // 2, crop_height, crop_width


def _square(height: int, width: int, size: int, numbers: list[float] | None) -> tuple[int, int, int, int]:
    if numbers is None:
        return round((height - size) / 2), round((width - size) / 2), size, size
    return int(numbers[0] * (height - size + 1)), int(numbers[1] * (width - size + 1)), size, size


def apply(picture: Picture, cut: Cut) -> UInt8[Tensor, "3 {cut.size} {cut.size}"]:
    """Decode what the cut needs, then cut and resize it."""
    top, left, height, width = cut.box
    if cut.whole == (picture.height, picture.width):
        # crop first, resize once; the decoder may reduce as long as the crop keeps `size` pixels
        scale = max(cut.size / height, cut.size / width)
        image = picture.decode(min(scale, 1.0))
        rows, columns = image.shape[1] / picture.height, image.shape[2] / picture.width
        above, before = round(top * rows), round(left * columns)
        image = image[:, above : above + max(1, round(height * rows)), before : before + max(1, round(width * columns))]
    else:
        scale = max(cut.whole[0] / picture.height, cut.whole[1] / picture.width)
        image = resize(picture.decode(min(scale, 1.0)), *cut.whole)[:, top : top + height, left : left + width]
    image = resize(image, cut.size, cut.size)
    return (image.flip(2) if cut.flip else image).contiguous()


@dataclass(frozen=True)
class Preset:
    """A training augmentation and the evaluation that belongs to it."""

    train: Augmentation
    evaluation: Augmentation

    def resized(self, size: int, short_side: int, warp: bool | None = None) -> "Preset":
        """The same augmentation for another input size (`short_side` is the side before cropping).

        `warp`: whether images are first warped to a square of that side; None: as before.
        """
        parts: dict[str, Any] = {}
        for name, part in (("train", self.train), ("evaluation", self.evaluation)):
            square = part.warp is not None if warp is None else warp
            shorter = not square and (part.warp or part.short_side) is not None
            warped, side = (short_side if applies else None for applies in (square, shorter))
            parts[name] = replace(part, size=size, warp=warped, short_side=side)
        return replace(self, **parts)


PRESETS = {
    "roth": Preset(Augmentation(224, area=(0.08, 1.0), flip=0.5), Augmentation(224, short_side=256)),
    "mlrc": Preset(Augmentation(227, short_side=256, area=(0.16, 1.0), flip=0.5), Augmentation(227, short_side=256)),
    "ms": Preset(Augmentation(227, short_side=256, area=(0.16, 1.0), flip=0.5), Augmentation(227, short_side=256)),
    "fastap": Preset(Augmentation(224, warp=256, random=True, flip=0.5), Augmentation(224, warp=256)),
    # a mirrored letter, or a part of one, may be another letter: only shifts and small changes of size
    "glyphs": Preset(Augmentation(32, area=(0.7, 1.0)), Augmentation(32)),
}


def preset(name: str) -> Preset:
    """The augmentations of the protocol called `name`."""
    if name not in PRESETS:
        raise unknown("augmentation", name, PRESETS)
    return PRESETS[name]
