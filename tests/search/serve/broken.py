"""Files that claim to be pictures."""

import random
import struct
import zlib
from io import BytesIO

import numpy as np
from PIL import Image

from tests.fixtures.png import chunk, png
from tests.search.serve.conftest import encoded


def flipped(content: bytes, seed: int) -> bytes:
    draw, changed = random.Random(seed), bytearray(content)
    for _ in range(20):
        changed[draw.randrange(16, len(changed))] ^= 1 << draw.randrange(8)
    return bytes(changed)


def pillow(kind: str, **settings: object) -> bytes:
    file = BytesIO()
    Image.fromarray(np.zeros((9, 9, 3), np.uint8)).save(file, kind, **settings)
    return file.getvalue()


def scanned(scans: int) -> bytes:
    """A progressive JPEG of 40 × 40 pixels with so many scans."""
    content = encoded(kind="JPEG", progressive=True)
    last = content.rindex(b"\xff\xda")
    return content[:last] + content[last:-2] * (1 + scans - content.count(b"\xff\xda")) + b"\xff\xd9"


def many_scans() -> bytes:
    return scanned(1000)


def kinds() -> dict[str, bytes]:
    jpeg, whole = encoded(kind="JPEG"), encoded(kind="PNG")
    gif, webp = encoded(kind="GIF"), encoded(kind="WEBP")
    result = {
        f"{name} cut at {share:.0%}": content[: int(share * len(content))]
        for name, content in (("jpeg", jpeg), ("png", whole), ("gif", gif), ("webp", webp))
        for share in (0.02, 0.3, 0.9)
    }
    result |= {
        f"{name} with flipped bits {seed}": flipped(content, seed)
        for name, content in (("jpeg", jpeg), ("png", whole), ("gif", gif), ("webp", webp))
        for seed in range(3)
    }
    return result | {
        "jpeg mark only": b"\xff\xd8\xff",
        "png mark only": b"\x89PNG\r\n\x1a\n",
        "gif mark only": b"GIF89a",
        "riff without webp": b"RIFF\x00\x00\x00\x00WAVEfmt ",
        "png without width": png(0, 5),
        "png without pixels": png(50, 50, data=b""),
        "png of noise": png(50, 50, data=b"noise"),
        "png with a wrong checksum": whole[:20] + b"\x00\x00\x00\x00" + whole[24:],
        "png with a bomb of a profile": png(9, 9, chunk(b"iCCP", b"x\x00\x00" + zlib.compress(bytes(50_000_000)))),
        "png with a bomb of a text": png(9, 9, chunk(b"zTXt", b"x\x00\x00" + zlib.compress(bytes(80_000_000)))),
        "html": b"<!doctype html><script>alert(1)</script>",
        "svg": b"<svg xmlns='http://www.w3.org/2000/svg'/>",
        "postscript": b"%!PS-Adobe-3.0 EPSF-3.0\n",
        "pdf": b"%PDF-1.7\n",
        "zip": b"PK\x03\x04",
        "text": b"no picture",
        "zeros": bytes(1000),
        "bmp": pillow("BMP"),
        "tiff": pillow("TIFF"),
        "ico": pillow("ICO"),
        "tga": pillow("TGA"),
        "ppm": pillow("PPM"),
        "jpeg 2000": b"\x00\x00\x00\x0cjP  \r\n\x87\n",
        "python": b"\x80\x04\x95.",
    }


def bombs() -> dict[str, bytes]:
    gif = (
        b"GIF89a"
        + struct.pack("<HH", 65000, 65000)
        + b"\x00\x00\x00,\x00\x00\x00\x00"
        + struct.pack("<HH", 65000, 65000)
    )
    return {
        "png of 2.5 billion pixels": png(50_000, 50_000),
        "png of 64 million pixels": png(8000, 8000, data=zlib.compress(bytes(8000 * 24001), 1)),
        "gif of 4 billion pixels": gif + b"\x00\x02\x02L\x01\x00;",
        "jpeg of 4 billion pixels": _resized(encoded(kind="JPEG")),
        "jpeg of a thousand scans": many_scans(),
    }


def _resized(content: bytes) -> bytes:
    place = content.index(b"\xff\xc0")
    return content[: place + 5] + struct.pack(">HH", 65000, 65000) + content[place + 9 :]
