"""The pictures of docs/serve.md are there, and small."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[4] / "docs" / "serve.md"


def test_its_pictures_are_there_and_small():
    pictures = re.findall(r'\((pictures/[^)]+)\)|src="(pictures/[^"]+)"', PAGE.read_text(encoding="utf-8"))
    files = [PAGE.parent / (first or second) for first, second in pictures]
    assert len(files) >= 2
    assert all(file.stat().st_size < 200_000 for file in files)
