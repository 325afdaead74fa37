"""From a feature map or tokens to one vector per image.

avg: the mean. avg_max: mean plus maximum (Kim et al., "Proxy Anchor", CVPR 2020, released code). gem: generalised mean
(Radenović, Tolias, Chum, "Fine-tuning CNN Image Retrieval with No Human Annotation", TPAMI 2019, eq. 3). cls: the class
token of a transformer. cls_avg: class token and mean side by side (Oquab et al., "DINOv2", TMLR 2024, app. B.3). What
takes means or maxima leaves class and register tokens out.

`shares` says how much of the pooled vector comes from each position: its columns add up to that vector.
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from lookalike.errors import check

Features = Float[Tensor, "n width rows columns"] | Float[Tensor, "n t width"]


def positions(features: Features, prefix_tokens: int = 0) -> Float[Tensor, "n width p"]:
    """All places of a map, or all patches among the tokens, as columns.

    >>> positions(torch.zeros(2, 7, 3, 3)).shape, positions(torch.zeros(2, 10, 7), prefix_tokens=1).shape
    (torch.Size([2, 7, 9]), torch.Size([2, 7, 9]))
    """
    if features.dim() == 4:
        return features.flatten(2)
    return features[:, prefix_tokens:].transpose(1, 2)


class Average(nn.Module):
    """The mean over all positions."""

    def forward(self, features: Features, prefix_tokens: int = 0) -> Float[Tensor, "n width"]:
        return positions(features, prefix_tokens).mean(2)

    def shares(self, features: Features, prefix_tokens: int = 0) -> Float[Tensor, "n width p"]:
        """Of every position: its values, divided by their number."""
        values = positions(features, prefix_tokens)
        return values / values.shape[2]


class AverageMax(nn.Module):
    """The mean plus the maximum over all positions."""

    def forward(self, features: Features, prefix_tokens: int = 0) -> Float[Tensor, "n width"]:
        values = positions(features, prefix_tokens)
        return values.mean(2) + values.amax(2)

    def shares(self, features: Features, prefix_tokens: int = 0) -> Float[Tensor, "n width p"]:
        """Of every position: its share of the mean, and the maximum where it lies there."""
        values = positions(features, prefix_tokens)
        largest, places = values.max(2, keepdim=True)
        return values / values.shape[2] + torch.zeros_like(values).scatter(2, places, largest)


class GeM(nn.Module):
    """(mean x^p)^(1/p) with a learnt p: the mean at p = 1, the maximum as p grows. Negative values are taken as 1e-6.

    >>> GeM(power=1.0)(torch.tensor([[[1.0], [3.0]]])).item()
    2.0
    """

    smallest = 1e-6

    def __init__(self, power: float = 3.0) -> None:
        super().__init__()
        check(power > 0, f"the power of the generalised mean must be positive, not {power}")
        self.power = nn.Parameter(torch.tensor(float(power)))

    def forward(self, features: Features, prefix_tokens: int = 0) -> Float[Tensor, "n width"]:
        values = positions(features, prefix_tokens).clamp(min=self.smallest)
        return values.pow(self.power).mean(2).pow(1 / self.power)

    def shares(self, features: Features, prefix_tokens: int = 0) -> Float[Tensor, "n width p"]:
        """Of every position: its share of the sum of powers, of the generalised mean."""
        powers = positions(features, prefix_tokens).clamp(min=self.smallest).pow(self.power)
        whole: Tensor = self(features, prefix_tokens)
        return powers / powers.sum(2, keepdim=True) * whole[:, :, None]


class ClassToken(nn.Module):
    """The first token of a transformer, which attends to all the others."""

    def forward(self, features: Features, prefix_tokens: int = 0) -> Float[Tensor, "n width"]:
        has_one = features.dim() == 3 and prefix_tokens > 0
        check(has_one, "this backbone has no class token: choose pooling avg, avg_max or gem")
        return features[:, 0]


class ClassTokenAverage(nn.Module):
    """The class token and the mean over all patches, side by side."""

    vectors = 2

    def __init__(self) -> None:
        super().__init__()
        self.token, self.average = ClassToken(), Average()

    def forward(self, features: Features, prefix_tokens: int = 0) -> Float[Tensor, "n two_widths"]:
        return torch.cat([pooling(features, prefix_tokens) for pooling in (self.token, self.average)], 1)

    def shares(self, features: Features, prefix_tokens: int = 0) -> Float[Tensor, "n two_widths p"]:
        """Of every position: its share of the mean; the class token, which lies nowhere, is everybody's alike."""
        means = self.average.shares(features, prefix_tokens)
        token = self.token(features, prefix_tokens)[:, :, None] / means.shape[2]
        return torch.cat([token.expand_as(means), means], 1)


POOLINGS: dict[str, type[Average] | type[AverageMax] | type[GeM] | type[ClassToken] | type[ClassTokenAverage]] = {
    "avg": Average,
    "avg_max": AverageMax,
    "gem": GeM,
    "cls": ClassToken,
    "cls_avg": ClassTokenAverage,
}
