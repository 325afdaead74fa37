"""Where networks of transformers come from: a folder, the Hugging Face Hub, a file of weights, a saved model."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from lookalike.errors import UserError, check, install
from lookalike.files import read_json
from lookalike.models.backbones.weights import read
from lookalike.models.preprocess import Preprocessing

# keys of a config that are not about the network
NOTES = {"architectures", "auto_map", "dtype", "id2label", "label2id", "torch_dtype", "transformers_version"}
DESCRIPTION = "model.json"  # of a saved model
BICUBIC = 3  # Pillow's number
RESCALE = 1 / 255
POOLERS = ("pooler", "head")  # the network's own pooling, which ours replaces


def config_keys(kind: str) -> set[str]:
    """What a config of this type holds, without the library's notes about files, code and labels."""
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    keys = CONFIG_MAPPING[kind]().to_dict().keys()
    return {key for key in keys if not key.startswith("_")} - NOTES


def read_config(name: str, config: Mapping[str, Any] | None) -> Any:
    automatic = _library().AutoConfig
    if config is not None:
        check("model_type" in config, f"the config of hf:{name} names no model_type")
        kind = config["model_type"]
        try:
            return automatic.for_model(**config)
        except ValueError as error:
            raise UserError(f"this version of transformers has no network of type {kind}: update it") from error
    try:
        whole = automatic.from_pretrained(name, trust_remote_code=False)
    except (OSError, ValueError) as error:
        reason = str(error).split("\n")[0]
        raise UserError(f"there is no network hf:{name}: {reason}") from error
    return getattr(whole, "vision_config", whole)


def build_network(name: str, config: Any, pretrained: bool, **options: Any) -> Any:
    automatic = _library().AutoModel
    try:
        with _silent():
            return (
                automatic.from_pretrained(name, config=config, use_safetensors=True, trust_remote_code=False, **options)
                if pretrained
                else automatic.from_config(config, trust_remote_code=False)
            )
    except (OSError, RuntimeError, ValueError) as error:
        reason = str(error).split("\n")[0]
        raise UserError(f"transformers cannot build '{name}': {reason}") from error


def network_from_file(path: Path, config: Any) -> Any:
    """A network with the weights of a file, in the layout and under the names that transformers writes."""
    from safetensors.torch import save_file

    check(path.is_file(), f"no weights at {path}: give 'pretrained', a .pth or .safetensors file, or a folder with one")
    with TemporaryDirectory() as folder:
        config.save_pretrained(folder)
        tensors = {key: value.contiguous() for key, value in read(path).items()}
        save_file(tensors, Path(folder) / "model.safetensors", {"format": "pt"})
        network, report = build_network(folder, config, True, output_loading_info=True)
    missing = sorted(key for key in report["missing_keys"] if not set(POOLERS) & set(key.split(".")))
    check(
        not missing, f"{path} does not fit {type(network).__name__}: {len(missing)} missing: {', '.join(missing[:4])}"
    )
    return network


def saved_settings(file: Path) -> tuple[Mapping[str, Any] | None, Mapping[str, Any] | None]:
    """Config and preprocessing of a network that was saved in a model folder."""
    try:
        settings = json.loads(file.read_text(encoding="utf-8"))["architecture"]["settings"]
        return settings.get("config"), settings.get("preprocessing")
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise UserError(f"{file} describes no network of transformers: {error}") from error


def source_preprocessing(name: str) -> Preprocessing:
    """The preprocessing of the network in a folder."""
    path = Path(name) / "preprocessor_config.json"
    check(
        path.is_file(),
        f"hf:{name} has no preprocessor_config.json: copy it from where the network came from, or say what it takes: "
        "--set 'model.preprocessing={crop = 224, resize = 256}'",
    )
    try:
        return from_processor(read_json(path))
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise UserError(f"cannot read {path}: {error}") from error


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


def _library() -> Any:
    try:
        import transformers
    except ImportError as error:
        raise UserError(f"hf:… needs transformers: {install('hf')}") from error
    return transformers


@contextmanager
def _silent() -> Iterator[None]:
    """Hide the library's progress bars and its lists of text layers that are left out: only the command line prints."""
    from transformers.utils import logging

    shown, level = logging.is_progress_bar_enabled(), logging.get_verbosity()
    logging.disable_progress_bar()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if shown:
            logging.enable_progress_bar()
