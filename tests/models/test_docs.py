"""The code in docs/models.md runs."""

import re
from pathlib import Path

DOCUMENT = Path(__file__).parents[2] / "docs" / "models.md"


def test_the_examples_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", DOCUMENT.read_text(encoding="utf-8"), flags=re.DOTALL)
    assert len(blocks) == 4
    space: dict[str, object] = {}
    for block in blocks:
        exec(block, space)
