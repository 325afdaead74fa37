"""A reader follows one loss value through few hands: at most 14 functions of ours, in at most 4 files."""

import sys
from pathlib import Path

import pytest
import torch

import lookalike
from tests.contracts.catalogue import NAMES, SAMPLED, build, mined, rows

pytestmark = pytest.mark.plain  # the shape hook wraps every function

ROOT = str(Path(lookalike.__file__).parent)
LABELS = torch.tensor([0, 0, 1, 1, 2, 2, 3, 0])
FUNCTIONS, FILES = 14, 4


def entered(call, *arguments):
    """The functions of ours that a call enters, as (file, name)."""
    functions = set()

    def note(frame, event, _):
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(ROOT):
            functions.add((code.co_filename, code.co_qualname))

    sys.setprofile(note)
    try:
        call(*arguments)
    finally:
        sys.setprofile(None)
    return functions


@pytest.mark.parametrize("name", NAMES)
def test_one_value_passes_few_functions(name):
    embeddings = rows(8)
    loss = build(name)
    # a loss that samples gets its sample: drawing one is a miner's work
    targets = loss.complete(mined(embeddings, LABELS)) if name in SAMPLED else LABELS
    functions = entered(loss, embeddings, targets)
    listing = "\n".join(f"{Path(file).name}: {function}" for file, function in sorted(functions))
    assert len(functions) <= FUNCTIONS, listing
    assert len({file for file, _ in functions}) <= FILES, listing
    assert any(function.endswith("forward") for _, function in functions)
