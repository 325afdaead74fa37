"""Pictures from strangers: only formats that browsers send, sizes read before anything is decoded."""

import threading
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from hashlib import blake2b

import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from lookalike.data.images.decode import Encoded
from lookalike.errors import UserError
from lookalike.image_files import PASSES, UnreadableError, check_markers, open_image
from lookalike.models.preprocess import Preprocessing, prepare
from lookalike.search.pictures import as_jpeg
from lookalike.search.queries import Box, pixels_of, views_of
from lookalike.search.serve.refusals import Refusal, of_mistake
from lookalike.search.why import ReadyPicture, ready

KEPT = 1024  # the longer side of a marked query
SCANS = 100  # of a progressive JPEG; each is a pass over all pixels, and few bytes can demand thousands
FORMATS = ((b"\xff\xd8\xff", "JPEG"), (b"\x89PNG\r\n\x1a\n", "PNG"), (b"GIF8", "GIF"), (b"RIFF", "WebP"))
# bytes of memory for a pixel while it is decoded, as measured; JPEGs of one scan are decoded row by row
BYTES = {"JPEG": 3, "JPEG of several scans": 12, "PNG": 7, "GIF": 7, "WebP": 20}
MEMORY = 600_000_000  # bytes for one picture
LARGE = 100_000_000  # bytes for a picture, or pixels times scans, beyond which it waits for other large ones
BULKY = 5_000_000  # bytes of a file that Pillow may have to read block by block


ALONE = threading.Lock()  # whoever holds it decodes a large picture: one at a time in a worker


@dataclass(frozen=True)
class Upload:
    """A picture as it came, and the part of it that is meant."""

    content: bytes
    box: Box | None = None

    @property
    def digest(self) -> str:
        return blake2b(self.content + repr(self.box).encode(), digest_size=16).hexdigest()


def check_header(content: bytes, most: int) -> bool:
    """Refuse what is not a picture, or too much of one, before any pixel is decoded; whether the picture is large."""
    kind = _kind_of(content)
    if kind is None or (kind == "WebP" and content[8:12] != b"WEBP"):
        raise Refusal(415, "This is not a picture in JPEG, PNG, WebP or GIF. Send one of those.")
    try:
        scans = check_markers(content).scans
        image = open_image(content)
    except UnreadableError as error:
        raise unreadable(error) from None
    pixels = image.width * image.height
    if scans > SCANS or scans * pixels > PASSES * most:
        raise Refusal(422, "This JPEG has more scans than any camera writes. Save it again and send that.")
    bytes_ = BYTES["JPEG of several scans" if scans > 1 or image.mode == "CMYK" else kind]
    most = min(most, MEMORY // bytes_)
    if pixels > most:
        size = f"{image.width} × {image.height}"
        raise Refusal(413, f"The picture has {size} pixels, more than {most:,}. Send a smaller one.")
    return max(bytes_, scans) * pixels > LARGE or (kind != "JPEG" and len(content) > BULKY)


def in_turn(content: bytes) -> AbstractContextManager[object]:
    """The turn of a picture of the index: each was let in by itself, and anybody may ask for several at once."""
    image, bytes_ = open_image(content), BYTES.get(_kind_of(content) or "", max(BYTES.values()))
    return ALONE if bytes_ * image.width * image.height > LARGE else nullcontext()


def _kind_of(content: bytes) -> str | None:
    return next((name for start, name in FORMATS if content.startswith(start)), None)


def unreadable(error: UnreadableError) -> Refusal:
    if error.kind == "bomb":
        return Refusal(413, "The picture has far too many pixels or parts. Save it again, smaller, and send that.")
    return Refusal(422, f"The picture cannot be read: it is {error.kind}. Send another file.")


def inputs_of(upload: Upload, how: Preprocessing, flip: bool) -> Float[Tensor, "_ c h w"]:
    """What the network takes: one row, or two with the mirror image."""
    return torch.cat([prepare([view], how) for view in views_of(decoded(upload), flip)])


def ready_of(upload: Upload, how: Preprocessing, flip: bool) -> ReadyPicture:
    """What is kept of a picture that waits to be explained: not its pixels."""
    return ready(how, decoded(replace(upload, box=None)), upload.box, flip)


def decoded(upload: Upload) -> UInt8[Tensor, "3 h w"]:
    """The part that is meant, upright, of a picture whose header was checked."""
    try:
        return pixels_of(Encoded(upload.content).decode(), upload.box)
    except UnreadableError as error:
        raise unreadable(error) from None
    except UserError as mistake:
        raise of_mistake(mistake) from None


def kept_picture(upload: Upload) -> bytes:
    """A JPEG to keep: large enough to train on, upright, with nothing else of the file."""
    return as_jpeg(decoded(upload).permute(1, 2, 0).numpy(), KEPT)
