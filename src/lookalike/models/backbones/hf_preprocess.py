"""The preprocessor_config.json of transformers as our preprocessing."""

from collections.abc import Mapping
from typing import Any

from lookalike.models.preprocess import Preprocessing

BICUBIC = 3  # Pillow's number
RESCALE = 1 / 255


def from_processor(values: Mapping[str, Any]) -> Preprocessing:
    """Size, crop, colours and interpolation of an image processor.

    >>> view = from_processor({"size": {"shortest_edge": 256}, "crop_size": {"height": 224}, "resample": 3})
    >>> view.resize, view.crop, view.interpolation
    (256, 224, 'bicubic')
    """
    unit = 1 / float(values.get("rescale_factor") or RESCALE) if values.get("do_rescale", True) else 1.0
    normalised = values.get("do_normalize", True)
    mean = values.get("image_mean") or (0.5, 0.5, 0.5) if normalised else (0.0, 0.0, 0.0)
    std = values.get("image_std") or (0.5, 0.5, 0.5) if normalised else (1.0, 1.0, 1.0)
    return Preprocessing(
        **_sizes(values),
        mean=tuple(unit * value for value in mean),
        std=tuple(unit * value for value in std),
        order="BGR" if values.get("do_flip_channel_order") else "RGB",
        interpolation="bicubic" if values.get("resample") == BICUBIC else "bilinear",
    )


def _sizes(values: Mapping[str, Any]) -> dict[str, Any]:
    size = values.get("size") or 224
    size = {"shortest_edge": size} if isinstance(size, int) else size
    warp = "height" in size
    side = int(size["height"] if warp else size["shortest_edge"])
    crop = values.get("crop_size") if values.get("do_center_crop", True) else None
    if crop is not None:
        return {"resize": side, "crop": int(crop if isinstance(crop, int) else crop["height"]), "warp": warp}
    share = values.get("crop_pct")  # ConvNeXt: the size is that of the crop, which is this share of the resized image
    return {"resize": int(side / share) if share else side, "crop": side, "warp": warp}
