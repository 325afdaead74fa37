"""The markers of a JPEG, walked from one to the next as libjpeg does (ITU-T T.81, annex B).

Searching for their bytes is not enough: the same bytes stand in thumbnails and colour profiles, and in the films that
phones write after the end of a picture.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

START_OF_SCAN, END, APP1 = 0xDA, 0xD9, 0xE1
FRAMES = {*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC}  # the headers of all coding processes
PROGRESSIVE = {0xC2, 0xC6, 0xCA, 0xCE}
ALONE = {0x01, *range(0xD0, 0xD9)}  # markers without a length: TEM, restarts, the start of an image
MARKERS = 10_000  # cameras write dozens, and readers keep a list of them
_MARKER = re.compile(rb"\xff([^\x00\xff])")
_AFTER_SCAN = re.compile(rb"\xff([^\x00\xff\xd0-\xd7])")  # restarts stand inside a scan


class Structure(NamedTuple):
    """What the markers of a JPEG say about it."""

    exif: bool  # there is some before the first scan
    scans: int  # passes that a decoder makes
    markers: int  # at most one more than `MARKERS`: nobody counts further


def structure(data: bytes) -> Structure:
    """Read the markers: to the first scan where a decoder makes one pass, otherwise to the end of the picture."""
    exif, scans, number, components, several = False, 0, 0, 0, False
    for number, (marker, start, end) in enumerate(_segments(data), 1):
        if marker in FRAMES and not components:
            components, several = int.from_bytes(data[start + 5 : start + 6]), marker in PROGRESSIVE
        elif marker == APP1 and not scans:
            exif = exif or data.startswith(b"Exif\x00\x00", start, end)
        elif marker == START_OF_SCAN:
            scans += 1
            several = several or data[start : start + 1] != bytes([components])
            if not several:
                break
        if number > MARKERS:
            break
    return Structure(exif, scans, number)


def _segments(data: bytes) -> Iterator[tuple[int, int, int]]:
    """Each marker with the start and the end of what belongs to it."""
    place, pattern = 2, _MARKER
    while (match := pattern.search(data, place)) is not None and (marker := match[1][0]) != END:
        start = match.end()
        if marker in ALONE:
            end = start
        else:
            end = start + max(2, int.from_bytes(data[start : start + 2]))
            start += 2
        yield marker, start, end
        place, pattern = end, _AFTER_SCAN if marker == START_OF_SCAN else _MARKER
