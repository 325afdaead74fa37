import pytest
import torch
from torch import nn

from lookalike.models import build
from lookalike.models.backbones.efficientnet_lite import EndPadded
from lookalike.models.backbones.normalised import normalised

CONVOLUTIONS = {
    "plain": lambda: nn.Conv2d(6, 8, 3, padding=1, bias=False),
    "with a bias": lambda: nn.Conv2d(6, 8, 1),
    "each channel by itself": lambda: nn.Conv2d(6, 6, 3, stride=2, groups=6, bias=False),
    "padded at the end": lambda: EndPadded(6, 8, 5, 2, bias=False),
}


def layers(kind: str) -> tuple[nn.Conv2d, nn.BatchNorm2d]:
    """In float64, with statistics and parameters that are not those of the start."""
    torch.manual_seed(0)
    convolution = CONVOLUTIONS[kind]().double()
    norm = nn.BatchNorm2d(convolution.out_channels, eps=1e-3).double()
    for values in (norm.running_mean, norm.running_var, norm.weight.data, norm.bias.data):
        values.copy_(torch.rand(len(values)) + 0.1)
    return convolution, norm


@pytest.mark.parametrize("kind", CONVOLUTIONS)
def test_is_the_two_layers_after_each_other(kind: str) -> None:
    convolution, norm = layers(kind)
    norm.eval()
    inputs = torch.randn(3, 6, 8, 8, dtype=torch.float64, requires_grad=True)
    leaves = [*convolution.parameters(), *norm.parameters(), inputs]
    two, one = norm(convolution(inputs)), normalised(convolution, norm, inputs)
    torch.testing.assert_close(one, two, rtol=1e-12, atol=1e-12)
    weights = torch.randn_like(two)
    for own, other in zip(
        torch.autograd.grad((one * weights).sum(), leaves),
        torch.autograd.grad((two * weights).sum(), leaves),
        strict=True,
    ):
        torch.testing.assert_close(own, other, rtol=1e-11, atol=1e-11)


def test_a_normalisation_that_trains_keeps_its_statistics() -> None:
    convolution, norm = layers("plain")
    before = norm.running_mean.clone()
    inputs = torch.randn(3, 6, 8, 8, dtype=torch.float64)
    out = normalised(convolution, norm, inputs)
    assert not torch.equal(norm.running_mean, before)
    torch.testing.assert_close(out.mean((0, 2, 3)), norm.bias)


def test_a_layer_that_is_something_else_runs_as_it_is() -> None:
    convolution, _ = layers("plain")
    inputs = torch.randn(3, 6, 8, 8, dtype=torch.float64)
    assert torch.equal(normalised(convolution, nn.Identity(), inputs), convolution(inputs))


@pytest.mark.parametrize("name", ["efficientnet_lite0", "resnet18", "resnet50", "bn_inception"])
def test_backbones_normalise_every_convolution_in_one_pass(name: str) -> None:
    network = build(name).eval()
    norms = [module for module in network.modules() if isinstance(module, nn.BatchNorm2d)]
    passes: list[nn.Module] = []
    for norm in norms:
        norm.register_forward_hook(lambda module, *_: passes.append(module))
    images = torch.rand(2, 3, 64, 64)
    with torch.no_grad():
        network(images)
        assert not passes
        network.train()(images)
    assert len(passes) == len(norms)
