"""Vision networks of transformers as backbones (DINOv2, CLIP, SigLIP, ConvNeXt, …): `hf:NAME` or `hf:FOLDER`.

Of a network with a text side only the vision side is used. Tokens come out of the network's own last normalisation;
in CLIP and ConvNeXt, which normalise only what they pool themselves, it is applied to every position.
"""

import inspect
from collections.abc import Mapping
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from lookalike.errors import check
from lookalike.models.backbones.detected_stages import detect_stages, watched
from lookalike.models.backbones.hf_source import (
    DESCRIPTION,
    POOLERS,
    build_network,
    config_keys,
    network_from_file,
    read_config,
    saved_settings,
    source_preprocessing,
)
from lookalike.models.backbones.hub import folder
from lookalike.models.backbones.stages import After, Steps, through
from lookalike.models.backbones.weights import Published, load
from lookalike.models.preprocess import Preprocessing

PICKLED = "pytorch_model.bin"  # of repositories without safetensors; read as plain tensors


class HuggingFace(nn.Module):
    """Any vision network of transformers; with `config` it is built without its source.

    `weights`: None (random), "pretrained" (those of its source), a file, the folder of a saved model, or a folder in
    the layout of transformers, which needs no connection, whatever the source is called.
    """

    def __init__(
        self,
        source: str,
        weights: str | Path | None = None,
        config: Mapping[str, Any] | None = None,
        preprocessing: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__()
        local = None if weights in (None, "pretrained") else Path(str(weights))
        if local is not None and (local / "config.json").is_file():
            source, weights, local = str(local), "pretrained", None
        saved = None if local is None or not (local / DESCRIPTION).is_file() else local / DESCRIPTION
        if saved is not None and config is None:
            config, preprocessing = saved_settings(saved)
        if config is None or weights == "pretrained":
            place = folder(source)
            source = str(place)
            if weights == "pretrained" and (place / PICKLED).is_file() and not any(place.glob("*.safetensors")):
                local = place / PICKLED
        settings = read_config(source, config)
        if local is None or saved is not None:
            self.network = _without_poolers(build_network(source, settings, weights == "pretrained"))
            load(self.network, local, Published(), "backbone.network.")
        else:
            self.network = _without_poolers(network_from_file(local, settings))
        self.width = _width(settings)
        self.prefix_tokens = _prefix_tokens(self.network, settings)
        self.stages = detect_stages(self.network, prefix="network.")
        self.preprocessing = Preprocessing.from_dict(preprocessing) if preprocessing else source_preprocessing(source)
        # enough to build it again without its source
        known = {"model_type", *config_keys(str(settings.model_type))}
        plain = {key: value for key, value in settings.to_dict().items() if key in known}
        self.rebuild = {"config": plain, "preprocessing": self.preprocessing.as_dict()}
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

    @property
    def steps(self) -> Steps | None:
        """What each stage computes; None where they are not, one after the other, the whole network."""
        return self._chain() if self._is_chain else None

    def _chain(self) -> Steps:
        for name in self.stages:
            module = self.network.get_submodule(name)
            yield name, partial(_normalised, module) if name == self.last_norm else partial(_called, module)

    @cached_property
    def _is_chain(self) -> bool:
        """Whether the stages of an image, one after the other, are what the network makes of it."""
        side, device = self.preprocessing.crop, next(self.network.parameters()).device
        image = torch.linspace(-1, 1, 3 * side * side, device=device).reshape(1, 3, side, side)
        modes = [(module, module.training) for module in self.modules()]
        self.eval()
        try:
            with torch.no_grad():
                return torch.allclose(through(self._chain(), image, None), self(image), atol=1e-5)
        except Exception:  # stages that need more than the output of the one before, such as rotary positions
            return False
        finally:
            for module, mode in modes:
                module.training = mode


def _called(stage: nn.Module, inputs: Tensor) -> Tensor:
    """A stage on the output of the one before, with what it takes beside that."""
    possible = {"attention_mask": None, "interpolate_pos_encoding": True}
    known = inspect.signature(stage.forward).parameters
    output = stage(inputs, **{name: value for name, value in possible.items() if name in known})
    return output if isinstance(output, Tensor) else output[0]


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
        isinstance(width, int), f"the width of a {config.model_type} is unknown: it cannot be used as a vision network"
    )
    return int(width)


def _prefix_tokens(network: nn.Module, config: Any) -> int:
    special = ("cls_token", "class_embedding", "distillation_token")
    single = sum(name.endswith(special) for name, _ in network.named_parameters())
    return single + int(getattr(config, "num_register_tokens", 0) or 0)
