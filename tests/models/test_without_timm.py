"""Where timm or its torchvision is missing, the message names what to install."""

import sys

import pytest
import torch

from lookalike import models
from lookalike.errors import UserError

TORCHVISION = f"torchvision 0.{int(torch.__version__.split('.')[1]) + 15}, which was made for this torch"


class Refused:
    """An import that ends with this error, whatever is installed."""

    def __init__(self, error):
        self.error = error

    def find_spec(self, name, *_):
        if name == "timm":
            raise self.error


@pytest.mark.parametrize(
    "error",
    [
        ModuleNotFoundError("No module named 'torchvision'"),
        RuntimeError("operator torchvision::nms does not exist"),
    ],
)
def test_the_torchvision_that_is_missing_or_does_not_match_is_named(monkeypatch, error):
    monkeypatch.delitem(sys.modules, "timm", raising=False)
    monkeypatch.setattr(sys, "meta_path", [Refused(error), *sys.meta_path])
    monkeypatch.setattr("lookalike.models.backbones.timm_adapter.find_spec", lambda _: "timm is installed")
    with pytest.raises(UserError) as refusal:
        models.build("timm:resnet18")
    assert all(word in str(refusal.value) for word in [f"timm cannot be imported ({error})", TORCHVISION])


def test_timm_itself_is_named_where_it_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "timm", None)
    with pytest.raises(UserError) as refusal:
        models.build("timm:resnet18")
    assert all(word in str(refusal.value) for word in ["needs timm: pip install", TORCHVISION])
