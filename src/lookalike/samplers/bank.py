"""The embedding bank: the last embedding of every training image.

Filled once with the evaluation transform, then overwritten by the embeddings of every batch: `update` does both.
Vectors are stored as they come, so update the bank in the geometry of the loss.
"""

import torch
from jaxtyping import Bool, Float, Integer
from torch import Tensor

from lookalike.errors import check
from lookalike.geometry import normalise
from lookalike.loss_inputs import check_embeddings


class EmbeddingBank:
    """One embedding of `dim` numbers for each of the training `images`; every rank must receive the same updates.

    >>> bank = EmbeddingBank(images=3, dim=2)
    >>> bank.update(torch.tensor([0, 2]), torch.ones(2, 2))
    >>> bank.filled
    tensor([ True, False,  True])
    """

    def __init__(self, images: int, dim: int) -> None:
        check(images > 0 and dim > 0, f"a bank needs images and dimensions, not {images} × {dim}")
        self.vectors: Float[Tensor, "n d"] = torch.zeros(images, dim)
        self.filled: Bool[Tensor, " n"] = torch.zeros(images, dtype=torch.bool)

    @staticmethod
    def of(embeddings: Float[Tensor, "n d"]) -> "EmbeddingBank":
        """A bank filled with the `embeddings` of all images."""
        check_embeddings(embeddings)
        bank = EmbeddingBank(*embeddings.shape)
        bank.update(torch.arange(len(bank)), embeddings)
        return bank

    def __len__(self) -> int:
        return len(self.vectors)

    def update(self, indices: Integer[Tensor, " m"], embeddings: Float[Tensor, "m d"]) -> None:
        """Overwrite those of the images at `indices` with `embeddings`, from any device, without gradient."""
        check_embeddings(embeddings)
        check(
            len(indices) == len(embeddings),
            f"{len(indices)} indices for {len(embeddings)} embeddings: give one per embedding",
        )
        dim = self.vectors.shape[1]
        check(embeddings.shape[1] == dim, f"the bank holds {dim} dimensions, the embeddings have {embeddings.shape[1]}")
        places = indices.cpu()
        low, high = (int(places.min()), int(places.max())) if len(places) else (0, 0)
        check(
            low >= 0 and high < len(self),
            f"indices run from {low} to {high}, the bank holds images 0 to {len(self) - 1}",
        )
        self.vectors[places] = normalise(embeddings.detach(), "none").float().cpu()
        self.filled[places] = True

    def check_ready(self) -> None:
        """Every image has an embedding, and every embedding is a number."""
        empty = len(self) - int(self.filled.sum())
        check(
            empty == 0, f"{empty} of {len(self)} images have no embedding in the bank: update it with all of them first"
        )
        broken = int((~self.vectors.isfinite()).any(1).sum())
        check(broken == 0, f"{broken} of {len(self)} embeddings in the bank are not finite: training has diverged")

    def state_dict(self) -> dict[str, Tensor]:
        return {"vectors": self.vectors, "filled": self.filled}

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        was, here = tuple(state["vectors"].shape), tuple(self.vectors.shape)
        check(was == here, f"the saved bank is {was[0]} × {was[1]}, this one {here[0]} × {here[1]}: they must agree")
        self.vectors, self.filled = state["vectors"].cpu().clone(), state["filled"].cpu().clone()
