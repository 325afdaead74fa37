"""How a batch goes through the network, and its gradient back: at once, or in chunks that fit the memory.

In chunks (Cakir, He, Xia, Kulis, Sclaroff: Deep Metric Learning to Rank, CVPR 2019, supplement [math G.4]): embed all
chunks without a graph, take the loss and its gradient on the embeddings of the whole batch, then embed chunk by chunk
again, now with a graph, and go back through it. The gradient is exact; the price is a second forward pass. Random
numbers (dropout) are replayed, so both passes see the same network.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from lookalike.errors import UserError, check

Embed = Callable[[Tensor], Tensor]
Back = Callable[[Tensor], None]  # takes the gradient of the embeddings through the network


def at_once(embed: Embed, inputs: Tensor) -> tuple[Tensor, Back]:
    """Embeddings, cut off from their graph, and the way back into it.

    >>> weight = torch.ones(1, requires_grad=True)
    >>> outputs, back = at_once(lambda x: weight * x, torch.tensor([[2.0], [3.0]]))
    >>> back(torch.ones_like(outputs))
    >>> weight.grad
    tensor([5.])
    """
    outputs = embed(inputs)
    return outputs.detach(), lambda gradient: outputs.backward(gradient)  # type: ignore[no-untyped-call]


@dataclass(frozen=True)
class InChunks:
    """The same, `size` inputs at a time.

    >>> weight = torch.ones(1, requires_grad=True)
    >>> outputs, back = InChunks(1)(lambda x: weight * x, torch.tensor([[2.0], [3.0]]))
    >>> back(torch.ones_like(outputs))
    >>> weight.grad
    tensor([5.])
    """

    size: int

    def __post_init__(self) -> None:
        check(self.size > 0, f"a chunk has at least one image, not {self.size}")

    def __call__(self, embed: Embed, inputs: Tensor) -> tuple[Tensor, Back]:
        chunks, states, outputs = torch.split(inputs, self.size), [], []
        with torch.no_grad():
            for chunk in chunks:
                states.append(_random_state(inputs.device))
                outputs.append(embed(chunk))

        def back(gradient: Tensor) -> None:
            after = _random_state(inputs.device)
            for chunk, state, part in zip(chunks, states, torch.split(gradient, self.size), strict=True):
                _set_random_state(inputs.device, state)
                embed(chunk).backward(part)  # type: ignore[no-untyped-call]
            _set_random_state(inputs.device, after)

        return torch.cat(outputs), back


def check_chunks(network: nn.Module) -> None:
    """Statistics of a chunk are not those of the batch: a network that takes them cannot be trained in chunks."""
    for name, module in network.named_modules():
        if isinstance(module, _BatchNorm) and module.training:
            raise UserError(
                f"chunks (train.chunk) and batch normalisation over the batch ({name}) exclude each other: "
                'set model.batch_norm = "frozen_statistics", or leave out train.chunk'
            )


def _random_state(device: torch.device) -> tuple[Tensor, Tensor | None]:
    own = torch.cuda.get_rng_state(device) if device.type == "cuda" else None
    return torch.get_rng_state(), own


def _set_random_state(device: torch.device, state: tuple[Tensor, Tensor | None]) -> None:
    torch.set_rng_state(state[0])
    if state[1] is not None:
        torch.cuda.set_rng_state(state[1], device)
