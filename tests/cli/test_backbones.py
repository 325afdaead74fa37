"""`lookalike backbones`: what is here, what the rest needs and costs; without a connection one line says what to do."""

import json

import pytest

from tests.missing import missing

try:
    import transformers  # noqa: F401
except ImportError:
    missing("transformers is not installed (extra: hf)")


@pytest.fixture(autouse=True)
def nowhere(lookalike, tmp_path):
    lookalike.environment |= {"HF_ENDPOINT": "http://127.0.0.1:9", "HF_HUB_CACHE": str(tmp_path / "hub")}


def test_listed_with_what_they_need_and_cost(lookalike):
    done = lookalike("backbones", "--only", "resnet18,tinyclip", "--json")
    assert done.code == 0, done.error
    own, known = json.loads(done.out)
    assert (own["name"], own["width"], own["size"]) == ("resnet18", 512, 224)
    assert (known["width"], known["licence"], round(known["millions"])) == (256, "MIT", 8)
    assert known["needs"] == "lookalike backbones fetch tinyclip"
    assert min(own["milliseconds"], known["milliseconds"]) > 0
    done = lookalike("backbones", "--only", "dinov2_smal")
    assert (done.code, done.error.count("\n")) == (2, 1)
    assert "did you mean 'dinov2_small'?" in done.error


@pytest.mark.parametrize(
    "words", [("backbones", "fetch", "dinov2_small"), ("fit", "PHOTOS", "--backbone", "dinov2_small")]
)
def test_without_a_connection_one_line_says_what_to_run_elsewhere(lookalike, photos, words):
    done = lookalike(*(photos if word == "PHOTOS" else word for word in words))
    assert (done.code, done.error.count("\n")) == (2, 1)
    assert (
        "run lookalike backbones fetch dinov2_small --to dinov2_small, copy the folder dinov2_small here" in done.error
    )
