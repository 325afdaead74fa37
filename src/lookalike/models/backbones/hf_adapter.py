"""Vision networks of transformers as backbones (DINOv2, CLIP, SigLIP, ConvNeXt, …): `hf:NAME` or `hf:FOLDER`.

Of a network with a text side only the vision side is used. Tokens come out of the network's own last normalisation;
in CLIP and ConvNeXt, which normalise only what they pool themselves, it is applied to every position.
"""

import inspect
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from jaxtyping import Float
from torch import Tensor, nn

from lookalike.errors import UserError, check, install
from lookalike.models.backbones.detected_stages import detect_stages, watched
from lookalike.models.backbones.hf_preprocess import from_processor
from lookalike.models.backbones.stages import After
from lookalike.models.preprocess import Preprocessing

POOLERS = ("pooler", "head")  # the network's own pooling, which ours replaces


class HuggingFace(nn.Module):
    """Any vision network of transformers; `weights=None`: random; with `config` it is built without its source."""

    def __init__(
        self,
        source: str,
        weights: str | None = None,
        config: Mapping[str, Any] | None = None,
        preprocessing: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__()
        check(
            weights in (None, "pretrained"), f"hf:… takes weights='pretrained' or none, not '{weights}': give hf:FOLDER"
        )
        settings = _config(source, config)
        self.network = _without_poolers(_network(source, settings, weights == "pretrained"))
        self.width = _width(settings)
        self.prefix_tokens = _prefix_tokens(self.network, settings)
        self.stages = detect_stages(self.network, prefix="network.")
        self.preprocessing = Preprocessing.from_dict(preprocessing) if preprocessing else _preprocessing(source)
        # enough to build it again without its source
        self.rebuild = {"config": settings.to_dict(), "preprocessing": self.preprocessing.as_dict()}
        self.any_size = "interpolate_pos_encoding" in inspect.signature(self.network.forward).parameters
        self.last_norm = _last_norm(self.network, str(settings.model_type))

    def forward(
        self, images: Float[Tensor, "n c h w"], after: After | None = None
    ) -> Float[Tensor, "n width rows columns"] | Float[Tensor, "n t width"]:
        options = {"interpolate_pos_encoding": True} if self.any_size else {}
        inside = {name: starts for name, starts in self.stages.items() if name != self.last_norm}
        with watched(self.network, inside, after):
            features: Tensor = self.network(pixel_values=images, **options).last_hidden_state
        if self.last_norm is None:
            return features
        features = _normalised(self.network.get_submodule(self.last_norm), features)
        return features if after is None else after(self.last_norm, features)


def _last_norm(network: nn.Module, kind: str) -> str | None:
    """The normalisation that these networks apply only to what they pool themselves."""
    ends = {"convnext": "layernorm", "convnextv2": "layernorm"}
    end = "post_layernorm" if kind.endswith("clip_vision_model") else ends.get(kind)
    matches = [name for name, _ in network.named_modules() if name.split(".")[-1] == end]
    return min(matches, key=len, default=None)


def _normalised(norm: nn.Module, features: Tensor) -> Tensor:
    if features.dim() == 3:
        return norm(features)  # type: ignore[no-any-return]
    return norm(features.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)  # type: ignore[no-any-return]


def _library() -> Any:
    try:
        import transformers
    except ImportError as error:
        raise UserError(f"hf:… needs transformers: {install('hf')}") from error
    return transformers


def _config(name: str, config: Mapping[str, Any] | None) -> Any:
    automatic = _library().AutoConfig
    if config is not None:
        check("model_type" in config, f"the config of hf:{name} names no model_type")
        return automatic.for_model(**config)
    try:
        whole = automatic.from_pretrained(name)
    except (OSError, ValueError) as error:
        reason = str(error).split("\n")[0]
        raise UserError(f"there is no network hf:{name}: {reason}") from error
    return getattr(whole, "vision_config", whole)


def _network(name: str, config: Any, pretrained: bool) -> Any:
    automatic = _library().AutoModel
    try:
        with _without_bars():
            return (
                automatic.from_pretrained(name, config=config, use_safetensors=True)
                if pretrained
                else automatic.from_config(config)
            )
    except (OSError, RuntimeError, ValueError) as error:
        reason = str(error).split("\n")[0]
        raise UserError(f"transformers cannot build '{name}': {reason}") from error


@contextmanager
def _without_bars() -> Iterator[None]:
    """Hide the library's progress bars: only the command line draws progress."""
    from transformers.utils import logging

    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()


def _without_poolers(network: Any) -> Any:
    inner = getattr(network, "vision_model", network)
    for name in POOLERS:
        part = getattr(inner, name, None)
        if isinstance(part, nn.Module) and any(True for _ in part.parameters()):
            setattr(inner, name, nn.Identity())
    return network


def _width(config: Any) -> int:
    width = getattr(config, "hidden_size", None) or (getattr(config, "hidden_sizes", None) or [None])[-1]
    check(
        isinstance(width, int),
        f"the width of a {config.model_type} is unknown: it cannot be used as a vision network",
    )
    return int(width)


def _prefix_tokens(network: nn.Module, config: Any) -> int:
    special = ("cls_token", "class_embedding", "distillation_token")
    single = sum(name.endswith(special) for name, _ in network.named_parameters())
    return single + int(getattr(config, "num_register_tokens", 0) or 0)


def _preprocessing(name: str) -> Preprocessing:
    from transformers.utils import cached_file

    try:
        path = cached_file(name, "preprocessor_config.json")
    except (OSError, ValueError) as error:
        raise UserError(
            f"hf:{name} has no preprocessor_config.json: give preprocessing={{'crop': …, 'mean': …}}"
        ) from error
    with open(path, encoding="utf-8") as file:
        return from_processor(json.load(file))
