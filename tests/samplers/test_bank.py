"""The embedding bank: written by the trainer, read by samplers, never half filled."""

import pytest
import torch

from lookalike import samplers
from lookalike.errors import UserError


def test_updates_overwrite_and_carry_no_gradient():
    bank = samplers.EmbeddingBank(4, 2)
    bank.update(torch.arange(4), torch.zeros(4, 2))
    embeddings = torch.ones(2, 2, requires_grad=True)
    bank.update(torch.tensor([3, 1]), embeddings)
    assert bank.vectors.tolist() == [[0, 0], [1, 1], [0, 0], [1, 1]]
    assert not bank.vectors.requires_grad
    bank.check_ready()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_embeddings_of_any_precision_are_kept_in_single(dtype):
    bank = samplers.EmbeddingBank(1, 2)
    bank.update(torch.tensor([0]), torch.tensor([[0.5, 2.0]], dtype=dtype))
    assert bank.vectors.tolist() == [[0.5, 2.0]]
    assert bank.vectors.dtype == torch.float32


def test_an_empty_or_broken_bank_is_refused_when_batches_are_chosen():
    labels = torch.arange(8) // 2
    bank = samplers.EmbeddingBank(8, 3)
    sampler = samplers.Coreset(labels, bank, batch_size=4, per_class=2)
    bank.update(torch.arange(5), torch.ones(5, 3))
    with pytest.raises(
        UserError, match="3 of 8 images have no embedding in the bank: update it with all of them first"
    ):
        next(iter(sampler))
    bank.update(torch.arange(8), torch.full((8, 3), torch.nan))
    with pytest.raises(UserError, match="8 of 8 embeddings in the bank are not finite"):
        next(iter(sampler))


def test_batches_follow_the_bank_at_the_beginning_of_the_epoch(generator):
    labels = torch.arange(40) // 4
    bank = samplers.EmbeddingBank.of(torch.randn(40, 3, generator=generator))
    sampler = samplers.Coreset(labels, bank, batch_size=8, per_class=2)
    first = list(sampler)
    sampler.set_epoch(0)
    bank.update(torch.arange(40), torch.randn(40, 3, generator=generator))
    assert list(sampler) == first
    sampler.set_epoch(1)
    sampler.set_epoch(0)
    assert list(sampler) != first


def test_state_is_a_copy_that_fits_only_its_own_size(tmp_path):
    bank = samplers.EmbeddingBank(2, 3)
    bank.update(torch.tensor([1]), torch.ones(1, 3))
    torch.save(bank.state_dict(), tmp_path / "bank.pt")
    other = samplers.EmbeddingBank(2, 3)
    other.load_state_dict(torch.load(tmp_path / "bank.pt", weights_only=True))
    assert torch.equal(other.vectors, bank.vectors)
    assert torch.equal(other.filled, bank.filled)
    with pytest.raises(UserError, match="the saved bank is 2 × 3, this one 5 × 3"):
        samplers.EmbeddingBank(5, 3).load_state_dict(bank.state_dict())


@pytest.mark.parametrize(("index", "run"), [(-1, "-1 to 0"), (4, "0 to 4")])
def test_images_the_bank_does_not_hold_are_refused(index, run):
    with pytest.raises(UserError, match=f"indices run from {run}, the bank holds images 0 to 3"):
        samplers.EmbeddingBank(4, 2).update(torch.tensor([0, index]), torch.ones(2, 2))


def test_an_empty_update_changes_nothing():
    bank = samplers.EmbeddingBank(4, 2)
    bank.update(torch.tensor([], dtype=torch.int64), torch.ones(0, 2))
    assert not bank.filled.any()


@pytest.mark.plain
def test_what_does_not_fit_is_refused():
    bank = samplers.EmbeddingBank(4, 2)
    with pytest.raises(UserError, match="2 indices for 3 embeddings"):
        bank.update(torch.arange(2), torch.ones(3, 2))
    with pytest.raises(UserError, match="the bank holds 2 dimensions, the embeddings have 5"):
        bank.update(torch.arange(3), torch.ones(3, 5))
    with pytest.raises(UserError, match="the bank holds 4 images, there are 6 labels"):
        samplers.Frechet(torch.arange(6) // 2, bank, batch_size=2)
    with pytest.raises(UserError, match="a bank needs images and dimensions, not 0 × 2"):
        samplers.EmbeddingBank(0, 2)
