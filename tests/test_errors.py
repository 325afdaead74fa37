"""Hints to install name the packages of an extra: from a clone, too, where no index has a package of our name."""

from importlib import metadata

import pytest

from lookalike import errors


@pytest.mark.parametrize(
    ("extra", "packages"),
    [
        ("export", ["onnx", "onnxruntime", "onnxscript"]),
        ("tune", ["optuna"]),
        ("hf", ["huggingface-hub", "transformers"]),
    ],
)
def test_a_hint_names_the_packages_of_its_extra(extra, packages):
    named = errors.install(extra).removeprefix("pip install ").strip("'").split("' '")
    assert sorted(name.partition(">")[0] for name in named) == packages


def test_without_metadata_the_hint_names_the_extra(monkeypatch):
    def absent(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(errors, "requires", absent)
    assert errors.install("tune") == "pip install 'lookalike[tune]'"
