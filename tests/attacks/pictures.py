"""Small files that claim much: the pixels of any picture cost bounded time and memory, or it is refused."""

import os
import random
import resource
import struct
import zlib
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import psutil
from PIL import Image

from lookalike.data.images.decode import Encoded
from lookalike.errors import UserError
from lookalike.image_files import UnreadableError
from tests.attacks.outcomes import Outcomes, right
from tests.fixtures.png import chunk

PIXELS = 50_000_000  # as many as the server reads
SECONDS, MEMORY = 8, 700 << 20  # of processor time, and bytes beyond those of this process
ENDINGS = {0: "answered", 3: "refused"}


def pictures_hold(outcomes: Outcomes, first: int, count: int, _: Path) -> None:
    outcomes.attempt_each(first, count, picture_trial)


def picture_trial(number: int) -> None:
    """One hostile file is decoded in a fork, whose processor time and memory are counted."""
    chance = random.Random(number)
    data = harmed(chance, chance.choice(KINDS)(chance))
    before = psutil.Process().memory_info().rss
    child = os.fork()
    if child == 0:
        ending = 1
        try:
            resource.setrlimit(resource.RLIMIT_CPU, (2 * SECONDS, 2 * SECONDS))
            Encoded(data).decode(chance.choice((1.0, 0.5, 0.1)))
            ending = 0
        except UnreadableError:
            ending = 3
        finally:
            os._exit(ending)
    _, status, usage = os.wait4(child, 0)
    seconds, memory = usage.ru_utime + usage.ru_stime, 1024 * usage.ru_maxrss - before
    right(seconds < SECONDS and memory < MEMORY, f"{len(data):,} bytes take {seconds:.1f} s and {memory >> 20} MB")
    right(os.waitstatus_to_exitcode(status) in ENDINGS, f"the decoder ends with {os.waitstatus_to_exitcode(status)}")
    if os.waitstatus_to_exitcode(status) == 3:
        raise UserError("The picture is refused.")


def size(chance: random.Random) -> tuple[int, int]:
    """Height and width: often all pixels that are allowed, also as a strip, sometimes more than that."""
    pixels = chance.choice((PIXELS, PIXELS, PIXELS // 10, 5000, 4 * PIXELS))
    width = chance.choice((int(pixels**0.5), int(pixels**0.5), 1, 16, 60_000))
    return max(1, min(pixels // width, 65_000)), min(width, 65_000)


def png(chance: random.Random) -> bytes:
    """Any depth and kind of colour, interlaced or not, with the rows it claims, fewer or more, and odd chunks."""
    colour, depth = chance.choice(
        ((0, 1), (0, 8), (0, 16), (2, 8), (2, 16), (3, 1), (3, 8), (4, 8), (4, 16), (6, 8), (6, 16))
    )
    height, width = size(chance)
    bits = depth * {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[colour]
    rows = int((1 + width * bits // 8 + 1) * height * chance.choice((1.0, 1.0, 0.01, 1.5)))
    header = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, chance.choice((0, 0, 1)))
    chunks = [chunk(b"IHDR", header), *([chunk(b"PLTE", bytes(768))] if colour == 3 else [])]
    chunks += [text(chance)] * chance.choice((0, 0, 1, 40, 3000))
    body = zeros(min(rows, 500 << 20))
    pieces = chance.choice((1, 1, 50))
    step = -(-len(body) // pieces)
    chunks += [chunk(b"IDAT", body[start : start + step]) for start in range(0, len(body), step)]
    return b"\x89PNG\r\n\x1a\n" + b"".join([*chunks, chunk(b"IEND", b"")])


def text(chance: random.Random) -> bytes:
    kind = chance.choice((b"tEXt", b"zTXt", b"iTXt", b"iCCP", b"eXIf", b"acTL", b"fcTL"))
    return chunk(kind, b"name\0\0" + zeros(chance.choice((10, 1000, 30 << 20))))


def zeros(count: int) -> bytes:
    """So many zero bytes, compressed."""
    packer, block = zlib.compressobj(1), bytes(1 << 20)
    parts = [packer.compress(block) for _ in range(count >> 20)]
    return b"".join([*parts, packer.compress(block[: count & ((1 << 20) - 1)]), packer.flush()])


def jpeg(chance: random.Random) -> bytes:
    """Progressive or not, a size it does not have, scans repeated, segments of any kind before them."""
    file = BytesIO()
    Image.new(chance.choice(("RGB", "L", "CMYK")), (48, 40), 90).save(file, "JPEG", progressive=chance.random() < 0.7)
    data = file.getvalue()
    frame = max(data.find(b"\xff\xc0"), data.find(b"\xff\xc2"))
    height, width = size(chance)
    data = data[: frame + 5] + struct.pack(">HH", height, width) + data[frame + 9 :]
    last = data.rindex(b"\xff\xda")
    scans = chance.choice((1, 1, 10, 100, 5000))
    before = segment(chance) * chance.choice((0, 1, 20, 12_000))
    return data[:2] + before + data[2:last] + data[last:-2] * scans + data[-2:]


def segment(chance: random.Random) -> bytes:
    content = chance.choice((b"", b"Exif\0\0", b"Exif\0\0MM\0*" + b"\xff" * 200, b"ICC_PROFILE\0\1\1", b"MPF\0II*\0"))
    return (
        struct.pack(">BBH", 0xFF, chance.choice((0xE1, 0xE2, 0xEB, 0xFE, 0xDD, 0xC4, 0xDB)), len(content) + 2) + content
    )


def gif(chance: random.Random) -> bytes:
    """A large canvas, many comments, frames that cover it."""
    file = BytesIO()
    frames = [Image.new("P", (50, 40), number) for number in range(chance.choice((1, 3, 30)))]
    frames[0].save(file, "GIF", save_all=True, append_images=frames[1:], duration=1)
    data = file.getvalue()
    height, width = size(chance)
    data = data[:6] + struct.pack("<HH", min(width, 65_535), min(height, 65_535)) + data[10:]
    palette = 13 + (3 * 2 ** (data[10] % 8 + 1) if data[10] & 128 else 0)
    return data[:palette] + b"!\xfe\x01a\0" * chance.choice((0, 100, 15_000)) + data[palette:]


def tiff(chance: random.Random) -> bytes:
    """Constant pixels of any mode, compressed; a size, a strip length or a tag it does not have."""
    height, width = size(chance)
    mode = chance.choice(("1", "L", "I;16", "I", "F", "RGB", "RGBA", "CMYK", "P"))
    made = min(height * width, PIXELS // 2)
    file = BytesIO()
    compression = chance.choice(("tiff_deflate", "tiff_lzw", "packbits", None))
    Image.new(mode, (max(1, made // height), height)).save(file, "TIFF", compression=compression)
    return file.getvalue()


def netpbm(chance: random.Random) -> bytes:
    """A header of any size and depth, and few bytes or many after it."""
    height, width = size(chance)
    kind = chance.choice((b"P1", b"P2", b"P3", b"P4", b"P5", b"P6", b"Pf"))
    head = b"%s\n%s%d %d\n" % (kind, b"#\n" * chance.choice((0, 50_000)), width, height)
    return head + b"%d\n" % chance.choice((1, 255, 65_535)) + b"0 " * chance.choice((10, 100_000, 5_000_000))


def bitmap(chance: random.Random) -> bytes:
    """BMP, ICO and TGA with another size in their headers, run-length encoded or not."""
    form, place = chance.choice((("BMP", 18), ("TGA", 12), ("ICO", 6)))
    file = BytesIO()
    settings = {"compression": "tga_rle"} if form == "TGA" and chance.random() < 0.5 else {}
    Image.new("RGB", (64, 48)).save(file, form, **settings)
    data, (height, width) = file.getvalue(), size(chance)
    if form == "ICO":
        return data[:6] + bytes([0, 0]) + data[8:]
    claim = struct.pack("<II" if form == "BMP" else "<HH", width, height)
    data = data[:place] + claim + data[place + len(claim) :]
    return data[:30] + bytes([chance.choice((0, 1, 2, 3))]) + data[31:] if form == "BMP" else data


def compressed(chance: random.Random) -> bytes:
    """Formats whose pixels are predicted: a constant picture of many megapixels is a small file."""
    side = chance.choice((64, 1000, 4000))
    file = BytesIO()
    form = chance.choice(("WEBP", "JPEG2000"))
    Image.new("RGB", (side, side), 7).save(file, form, **({"lossless": True, "method": 0} if form == "WEBP" else {}))
    return file.getvalue()


def harmed(chance: random.Random, data: bytes) -> bytes:
    """Every third file is cut off or has a few bytes of another file."""
    if chance.random() < 0.66:
        return data
    place = chance.randrange(len(data)) if chance.random() < 0.5 else chance.randrange(min(200, len(data)))
    return data[:place] if chance.random() < 0.3 else data[:place] + chance.randbytes(3) + data[place + 3 :]


KINDS: tuple[Callable[[random.Random], bytes], ...] = (png, png, jpeg, jpeg, gif, tiff, netpbm, bitmap, compressed)
