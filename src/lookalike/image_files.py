"""Image files that nobody vouches for: only ordinary files below a size limit, only formats decoded in process.

A folder of photos may contain pipes, devices, links to them, sparse files of terabytes, small files that claim billions
of pixels, and PostScript that Pillow would hand to another program. None of them is read.
"""

import errno
import threading
import warnings
from collections.abc import Iterator
from functools import cache
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from lookalike.files import read_regular
from lookalike.jpeg_markers import MARKERS, Structure, structure

if TYPE_CHECKING:
    from PIL.Image import Image

MAX_BYTES = 1 << 29  # half a gigabyte, more than any photo
MAX_PIXELS = 1 << 27  # 134 million: a decoded image of 400 MB; a small file that claims more is a decompression bomb
# of a progressive JPEG over as many pixels as are allowed; libjpeg writes 10, and few bytes can ask for 100
PASSES = 16
JPEG, NO_JPEG = b"\xff\xd8", Structure(exif=False, scans=1, markers=0)
PNG, GIF = b"\x89PNG\r\n\x1a\n", b"GIF8"
LONGEST = 16  # a strip longer than this is squeezed: at a short side of 256, 1 × 10,000 pixels would be gigabytes
# formats that Pillow decodes by itself; TGA, which has no mark of its own, comes last
FORMATS = ("JPEG", "MPO", "PNG", "WEBP", "BMP", "GIF", "TIFF", "PPM", "JPEG2000", "AVIF", "HEIF", "ICO", "TGA")
_opening = threading.Lock()  # Pillow reports bombs as warnings, and the filter of warnings is one per process


class UnreadableError(Exception):
    """An image that cannot be used. It is never fatal: who reads many files lists it and continues.

    `kind` is one of missing, not a file, too large, empty, not an image, truncated, damaged, bomb; `number` is that of
    the system's own error (errno), where there was one.
    """

    def __init__(self, kind: str, detail: str, number: int | None = None) -> None:
        super().__init__(f"{kind}: {detail}")
        self.kind = kind
        self.detail = detail
        self.number = number

    def __reduce__(self) -> tuple[type["UnreadableError"], tuple[str, str, int | None]]:
        return UnreadableError, (self.kind, self.detail, self.number)  # the default loses arguments when it is pickled


KINDS = ("missing", "not a file", "too large", "empty", "not an image", "truncated", "damaged", "bomb")


def read(path: Path) -> bytes:
    """The bytes of an image file."""
    try:
        data = read_regular(path, MAX_BYTES)
    except FileNotFoundError:
        raise UnreadableError("missing", "there is no such file") from None
    except OSError as error:
        kind = {errno.ENXIO: "not a file", errno.EISDIR: "not a file", errno.EFBIG: "too large"}.get(error.errno or 0)
        raise UnreadableError(kind or "missing", f"it cannot be read: {error.strerror}", error.errno) from None
    if not data:
        raise UnreadableError("empty", "the file has no content")
    return data


def open_image(data: bytes) -> "Image":
    """The bytes as a Pillow image, its header read, its pixels not yet decoded."""
    from PIL import Image, UnidentifiedImageError

    scans = check_markers(data).scans
    check_blocks(data)
    try:
        with _opening, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the size is checked below; broken EXIF does not matter
            image = Image.open(BytesIO(data), formats=_formats())
    except UnidentifiedImageError:
        raise UnreadableError("not an image", f"it begins with {data[:8]!r}") from None
    except Image.DecompressionBombError as error:
        raise UnreadableError("bomb", str(error)) from None
    except Exception as error:  # decoders raise whatever damaged bytes lead them to
        raise decoding_failure(error) from None
    check_size(image.height, image.width, scans)
    return image


def check_markers(data: bytes) -> Structure:
    """The structure of a file, where it is a JPEG; one of so many segments that listing them takes long is refused."""
    result = structure(data) if data.startswith(JPEG) else NO_JPEG
    if result.markers > MARKERS:
        raise UnreadableError("bomb", f"more than {MARKERS:,} segments in {len(data):,} bytes")
    return result


def check_blocks(data: bytes) -> None:
    """Refuse a PNG or GIF of so many blocks that Pillow, which reads them one by one, would need seconds to open it."""
    blocks = _png_chunks(data) if data.startswith(PNG) else _gif_blocks(data) if data.startswith(GIF) else iter(())
    most = MARKERS + len(data) // 512
    if sum(1 for _ in islice(blocks, most + 1)) > most:
        raise UnreadableError("bomb", f"more than {most:,} blocks in {len(data):,} bytes")


def _png_chunks(data: bytes) -> Iterator[int]:
    """Where each chunk before the last begins: a length, a name, its content and a checksum."""
    place = len(PNG)
    while place < len(data) and data[place + 4 : place + 8] != b"IEND":
        yield place
        place += 12 + int.from_bytes(data[place : place + 4])


def _gif_blocks(data: bytes) -> Iterator[int]:
    """Where each block before the first image begins; comments and other extensions consist of them."""
    flags = int.from_bytes(data[10:11])
    place = 13 + (3 * 2 ** (flags % 8 + 1) if flags & 128 else 0)
    while data[place : place + 1] == b"!":
        place += 2
        while length := int.from_bytes(data[place : place + 1]):
            yield place
            place += 1 + length
        yield place
        place += 1


def check_size(height: int, width: int, scans: int) -> None:
    """Refuse an image of too many pixels, or of too many scans of them, before they are decoded."""
    if height * width > MAX_PIXELS:
        raise UnreadableError("bomb", f"{width} × {height} pixels, more than {MAX_PIXELS:,}")
    if scans * height * width > PASSES * MAX_PIXELS:
        raise UnreadableError("bomb", f"{scans} scans of {width} × {height} pixels")


def decoding_failure(error: Exception) -> UnreadableError:
    """What a decoder's own error says about the file."""
    text = " ".join(str(error).split()) or type(error).__name__
    return UnreadableError("truncated" if "truncated" in text.lower() else "damaged", text)


@cache
def _formats() -> tuple[str, ...]:
    """Our formats among those that this Pillow, with its plugins, knows."""
    from PIL import Image

    Image.init()
    return tuple(name for name in FORMATS if name in Image.OPEN)
