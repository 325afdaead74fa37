"""Networks of timm (Wightman, "PyTorch Image Models") as backbones: `timm:densenet121`, `timm:convnext_atto`, …"""

from collections.abc import Mapping
from difflib import get_close_matches
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from lookalike.errors import UserError, check, install, unknown
from lookalike.models.backbones.detected_stages import detect_stages, watched
from lookalike.models.backbones.stages import After
from lookalike.models.backbones.weights import Published, load
from lookalike.models.preprocess import Preprocessing


class Timm(nn.Module):
    """Any timm network without its classifier; `weights="pretrained"`: timm fetches them; `options`: passed to timm."""

    def __init__(
        self, source: str, weights: str | Path | None = None, options: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__()
        timm = _library()
        if ":" not in source and not timm.is_model(source):  # hf-hub:… and local-dir:… are timm's own to find
            raise unknown("timm network", source, get_close_matches(source, timm.list_models(), n=8, cutoff=0))
        self.network = _created(timm, source, str(weights) == "pretrained", dict(options or {}))
        self.width = int(getattr(self.network, "head_hidden_size", self.network.num_features))
        self.prefix_tokens = int(getattr(self.network, "num_prefix_tokens", 0))
        form = getattr(self.network, "output_fmt", None)
        self.channels_last = getattr(form, "value", form) == "NHWC"
        self.stages = detect_stages(self.network, prefix="network.")
        self.preprocessing = _preprocessing(self.network.pretrained_cfg, dict(options or {}).get("img_size"))
        if str(weights) != "pretrained":
            known = Published(classifier=_classifier(self.network.pretrained_cfg))
            load(self.network, weights, known, saved_as="backbone.network.")

    def forward(
        self, images: Float[Tensor, "n c h w"], after: After | None = None
    ) -> Float[Tensor, "n width rows columns"] | Float[Tensor, "n t width"]:
        with watched(self.network, self.stages, after):
            features: Tensor = self.network(images)
        return features.permute(0, 3, 1, 2) if self.channels_last else features


def _library() -> Any:
    try:
        import timm
    except ImportError as error:
        if find_spec("timm") is None:
            raise UserError(f"timm:… needs timm: {install('timm')}, with {_torchvision()}") from error
        raise UserError(f"timm cannot be imported ({error}): it needs {_torchvision()}") from error
    except RuntimeError as error:  # torchvision was built for another torch
        raise UserError(f"timm cannot be imported ({error}): it needs {_torchvision()}") from error
    return timm


def _torchvision() -> str:
    """The torchvision that was made for this torch: 0.21 for 2.6, and so on."""
    number = int(torch.__version__.split(".")[1]) + 15
    return (
        f"torchvision 0.{number}, which was made for this torch {torch.__version__}, from the index that torch is from"
    )


def _created(timm: Any, name: str, pretrained: bool, options: dict[str, Any]) -> Any:
    try:
        return timm.create_model(name, pretrained=pretrained, num_classes=0, global_pool="", **options)
    except (AssertionError, OSError, RuntimeError, TypeError, ValueError) as error:
        reason = str(error).split("\n")[0] or "it needs its own pooling"
        raise UserError(f"timm cannot build '{name}': {reason}") from error


def _classifier(published: Mapping[str, Any]) -> tuple[str, ...]:
    names = published.get("classifier") or ()
    return tuple(f"{name}." for name in ((names,) if isinstance(names, str) else names))


def _preprocessing(published: Mapping[str, Any], size: int | None) -> Preprocessing:
    crop = int(size or published["input_size"][-1])
    channels = int(published["input_size"][0])
    check(channels == 3, f"this network takes {channels} channels, but images have 3: choose another")
    smooth = published.get("interpolation") == "bicubic"
    return Preprocessing(
        crop=crop,
        resize=int(crop / (published.get("crop_pct") or 1.0)),
        mean=tuple(255 * value for value in published["mean"]),
        std=tuple(255 * value for value in published["std"]),
        interpolation="bicubic" if smooth else "bilinear",
    )
