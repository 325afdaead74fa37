"""Images on their way into a network: read, resized and cropped by threads while the network computes."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from lookalike.errors import UserError, check
from lookalike.files import printable
from lookalike.image_files import UnreadableError, decoding_failure, open_image, read
from lookalike.models.preprocess import Preprocessing, prepare
from lookalike.ordered_map import in_order

# a file -> a PIL image, an array (rows × columns × channels) or a tensor (channels first)
Decode = Callable[[Path], Any]
THREADS = 2


def in_batches(images: Any, size: int, how: Preprocessing, read: Decode) -> Iterator[Float[Tensor, "_ c h w"]]:
    """Images as network inputs, `size` at a time."""
    if isinstance(images, Tensor | np.ndarray):
        yield from (prepare(images[start : start + size], how) for start in range(0, len(images), size))
        return

    def ready(row: int) -> Tensor:
        image = images[row]
        return prepare([read(Path(image)) if isinstance(image, str | Path) else image], how)

    # a sequence of the user's own may not be made for several threads
    threads = THREADS if isinstance(images, list | tuple) else 0
    yield from batched(ready, len(images), size, threads)


def batched(ready: Callable[[int], Tensor], count: int, size: int, threads: int = THREADS) -> Iterator[Tensor]:
    """The inputs 0 … count − 1 in batches, each prepared by one of some threads (0: by none)."""
    numbers = -(-count // size)

    def batch(number: int) -> Tensor:
        return torch.cat([ready(row) for row in range(number * size, min(count, (number + 1) * size))])

    return in_order(batch, numbers, threads, 2 * threads) if threads else map(batch, range(numbers))


@contextmanager
def evaluating(network: nn.Module) -> Iterator[None]:
    """A network in evaluation mode; afterwards it is in the mode it was in."""
    was_training = network.training
    network.eval()
    try:
        yield
    finally:
        network.train(was_training)


def computed(run: Callable[[Tensor], Tensor], inputs: Tensor) -> Tensor:
    """The output of a network, or one line that says why there is none."""
    try:
        return run(inputs)
    except UserError:
        raise
    except Exception as error:  # a network of another library, or of the user's own, raises what it likes
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise UserError(f"the network cannot process images as {tuple(inputs.shape)}: {reason}") from error


def check_many(images: Any) -> None:
    if isinstance(images, str | Path):
        raise UserError(f"encode takes many images: give ['{images}']")
    several = hasattr(images, "__len__") and hasattr(images, "__getitem__")
    check(several, f"encode takes a sequence of images, not {type(images).__name__}: put it into a list")
    check(len(images) > 0, "there are no images to encode: the sequence is empty")
    single = isinstance(images, np.ndarray) and images.ndim == 3 and images.shape[-1] == 3
    single = single or (isinstance(images, Tensor) and images.ndim == 3 and images.shape[0] == 3)
    check(not single, "this looks like one image: encode takes many, give [image]")


def read_image(path: Path) -> Any:
    """A file as a PIL image, turned upright as its EXIF says."""
    from PIL import ImageOps

    try:
        image = open_image(read(path))
        try:
            return ImageOps.exif_transpose(image).copy()
        except Exception as error:  # decoders raise whatever damaged bytes lead them to
            raise decoding_failure(error) from error
    except UnreadableError as error:
        name = printable(str(path))
        check(error.kind != "missing" or path.exists(), f"there is no image {name}: check its name")
        raise UserError(f"cannot read {name} as an image: {error.detail}") from error
