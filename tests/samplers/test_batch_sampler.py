"""What all samplers promise: the same seed gives the same batches, resuming continues them, ranks share them."""

from collections import Counter
from copy import deepcopy
from itertools import islice

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

from lookalike import samplers
from lookalike.catalog import settings_of
from lookalike.errors import UserError

IMAGES = 96
LABELS = torch.arange(IMAGES) % 12
CATEGORIES = LABELS % 3
SETTINGS = {name: {"batch_size": 8} for name in samplers.names()}
for name in ("class_balanced", "class_chunks", "class_queue"):
    SETTINGS[name]["per_class"] = 2
for name in ("distribution_match", "frechet", "coreset", "d2_coreset"):
    SETTINGS[name] |= {"per_class": 2, "big_batch": 32}


def filled_bank(seed=0):
    return samplers.EmbeddingBank.of(torch.randn(IMAGES, 6, generator=torch.Generator().manual_seed(seed)))


def build(name, bank=None, **settings):
    bank = bank or filled_bank()
    return samplers.build(name, labels=LABELS, categories=CATEGORIES, bank=bank, **(SETTINGS[name] | settings))


every = pytest.mark.parametrize("name", samplers.names())


@every
def test_batches_are_lists_of_dataset_indices(name):
    sampler = build(name)
    batches = list(sampler)
    assert isinstance(sampler, samplers.BatchSampler)
    assert len(batches) == len(sampler) > 1
    for batch in batches:
        assert len(batch) == 8
        assert all(type(image) is int and 0 <= image < IMAGES for image in batch)


@every
def test_seed_and_epoch_decide(name):
    sampler, again, other = build(name), build(name), build(name, seed=1)
    first = list(sampler)
    assert list(again) == first
    assert list(other) != first
    sampler.set_epoch(5)
    again.set_epoch(5)
    fifth = list(sampler)
    assert fifth != first
    assert list(again) == fifth
    sampler.set_epoch(0)
    assert list(sampler) == first


@every
def test_the_global_random_numbers_play_no_part(name):
    torch.manual_seed(0)
    before = torch.get_rng_state()
    first = list(build(name))
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(1)
    assert list(build(name)) == first


@every
def test_without_steps_every_iteration_is_the_next_epoch(name):
    sampler, reference = build(name), build(name)
    for epoch in range(3):
        reference.set_epoch(epoch)
        assert list(sampler) == list(reference)


@every
@pytest.mark.parametrize("consumed", [0, 1, 3, -1])
def test_resuming_continues_after_the_last_consumed_batch(name, consumed):
    bank = filled_bank()
    sampler = build(name, bank, seed=3)
    sampler.set_epoch(2)
    whole = list(sampler)
    sampler.set_epoch(2)
    consumed %= len(sampler) + 1
    loader = iter(sampler)
    for _ in range(consumed):
        next(loader)
        sampler.step()
    list(loader)  # a loader asks for all the others before they are consumed
    state = deepcopy(sampler.state_dict())

    bank.update(torch.arange(IMAGES), torch.randn(IMAGES, 6))  # training has continued and changed the bank
    resumed = build(name, bank)
    resumed.load_state_dict(state)
    if consumed < len(sampler):
        assert list(resumed) == whole[consumed:]
        resumed.set_epoch(3)
    sampler.set_epoch(3)
    assert list(resumed) == list(sampler)


@every
@pytest.mark.parametrize("sets_epoch", [False, True])
def test_a_loop_with_steps_passes_through_all_epochs(name, sets_epoch):
    sampler, reference = build(name), build(name)
    for epoch in range(3):
        if sets_epoch:
            sampler.set_epoch(epoch)  # changes nothing: the last step has begun this epoch
        reference.set_epoch(epoch)
        batches = []
        for batch in sampler:
            batches.append(batch)
            sampler.step()
        assert batches == list(reference)


@every
@pytest.mark.parametrize("ranks", [2, 4])
def test_ranks_share_the_batch_of_one_rank(name, ranks):
    if name in ("class_queue", "class_balanced", "class_chunks") and ranks == 4:
        ranks = 2
    alone = list(build(name))
    shared = [list(build(name, rank=rank, ranks=ranks)) for rank in range(ranks)]
    for number, batch in enumerate(alone):
        parts = [batches[number] for batches in shared]
        assert [len(part) for part in parts] == [8 // ranks] * ranks
        assert Counter(image for part in parts for image in part) == Counter(batch)


@pytest.mark.parametrize("name", [name for name in samplers.names() if "per_class" in SETTINGS[name]])
def test_ranks_keep_the_classes_of_balanced_batches_whole(name):
    shared = [list(build(name, rank=rank, ranks=2)) for rank in range(2)]
    for left, right in zip(*shared, strict=True):
        for part in (left, right):
            assert all(count >= 2 for count in Counter(LABELS[part].tolist()).values())
        if name not in ("coreset", "d2_coreset"):
            assert not set(LABELS[left].tolist()) & set(LABELS[right].tolist())


@every
def test_the_state_of_one_rank_serves_another_number_of_ranks(name):
    sampler = build(name)
    list(sampler)
    state = sampler.state_dict() | {"position": 2}
    rest = build(name)
    rest.load_state_dict(state)
    halves = [build(name, rank=rank, ranks=2) for rank in range(2)]
    for half in halves:
        half.load_state_dict(state)
    for batch, left, right in zip(rest, *halves, strict=True):
        assert sorted(left + right) == sorted(batch)


@every
def test_labels_in_any_container_and_as_names_give_the_same_batches(name):
    expected = list(build(name))
    words = [f"class {label:02}" for label in LABELS.tolist()]
    for labels in (LABELS.tolist(), LABELS.numpy(), words, np.array(words)):
        facts = {"labels": labels, "categories": CATEGORIES.tolist(), "bank": filled_bank()}
        assert list(samplers.build(name, **facts, **SETTINGS[name])) == expected


def test_categories_may_be_names():
    words = np.array(["birds", "cars", "dogs"])[CATEGORIES.numpy()]
    sampler = samplers.CategoryPairs(LABELS, words, batch_size=8)
    assert list(sampler) == list(samplers.CategoryPairs(LABELS, CATEGORIES, batch_size=8))


@every
def test_repr_shows_the_settings(name):
    sampler = build(name, seed=4)
    text = repr(sampler)
    assert text.startswith(samplers.MEMBERS[name].__name__ + "(batch_size=8, ")
    for setting in set(settings_of(samplers.MEMBERS[name])) - {"labels", "categories", "bank", "chances"}:
        assert f"{setting}=" in text
    assert "seed=4" in text
    sampler.load_state_dict(build(name, seed=9).state_dict())
    assert "seed=9" in repr(sampler)


def test_a_method_of_ones_own_is_a_function_that_composes_an_epoch():
    def shuffled(batches, generator):
        return torch.randperm(IMAGES, generator=generator).view(batches, -1)

    sampler = samplers.BatchSampler(shuffled, LABELS, batch_size=8)
    first = list(sampler)
    assert sorted(image for batch in first for image in batch) == list(range(IMAGES))
    assert list(sampler) != first
    parts = [next(iter(samplers.BatchSampler(shuffled, LABELS, 8, rank=rank, ranks=2))) for rank in (0, 1)]
    assert sorted(parts[0] + parts[1]) == sorted(first[0])


@pytest.mark.parametrize("workers", [0, 2])
def test_a_loader_that_prefetches_resumes_exactly(workers):
    dataset = TensorDataset(torch.arange(IMAGES))

    def loader(sampler):
        return DataLoader(dataset, batch_sampler=sampler, num_workers=workers, multiprocessing_context=context)

    context = "fork" if workers else None
    whole = list(build("class_balanced"))
    sampler = build("class_balanced")
    batches = iter(loader(sampler))
    for images in whole[:4]:
        assert next(batches)[0].tolist() == images
        sampler.step()
    del batches
    resumed = build("class_balanced")
    resumed.load_state_dict(sampler.state_dict())
    assert [batch[0].tolist() for batch in loader(resumed)] == whole[4:]


@pytest.mark.parametrize(
    "name", [name for name in samplers.names() if "batches" in settings_of(samplers.MEMBERS[name])]
)
@pytest.mark.parametrize("batches", [1, 30])
def test_an_epoch_can_be_any_number_of_batches(name, batches):
    sampler = build(name, batches=batches)
    assert len(list(sampler)) == len(sampler) == batches


def test_a_loader_without_steps_gets_a_new_epoch_every_time():
    dataset = TensorDataset(torch.arange(IMAGES))
    sampler = build("class_queue")
    loader = DataLoader(dataset, batch_sampler=sampler)
    epochs = [[batch[0].tolist() for batch in loader] for _ in range(3)]
    assert epochs[0] != epochs[1] != epochs[2] != epochs[0]
    assert len(loader) == len(epochs[0])


def test_leaving_an_epoch_early_consumes_nothing():
    sampler = build("class_balanced")
    first = list(islice(sampler, 3))
    assert list(islice(sampler, 3)) == first


def test_an_epoch_set_again_is_the_same_again():
    sampler = build("class_balanced")
    first = list(sampler)
    sampler.set_epoch(0)
    assert list(sampler) == first


def test_state_survives_saving(tmp_path):
    sampler = build("frechet")
    whole = list(sampler)
    sampler.set_epoch(0)
    sampler.step()
    torch.save(sampler.state_dict(), tmp_path / "state.pt")
    resumed = build("frechet", filled_bank(seed=7))
    resumed.load_state_dict(torch.load(tmp_path / "state.pt", weights_only=True))
    assert list(resumed) == whole[1:]


def test_a_state_of_other_data_is_refused():
    state = build("class_balanced").state_dict()
    with pytest.raises(UserError, match="the saved sampler had batch_size = 8, this one has 4"):
        build("class_balanced", batch_size=4, batches=12).load_state_dict(state)
    with pytest.raises(UserError, match="the saved sampler had images = None, this one has 96"):
        build("class_balanced").load_state_dict({})


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"ranks": 3}, "a batch of 8 cannot be shared evenly by 3 ranks"),
        ({"ranks": 0}, "a batch of 8 cannot be shared evenly by 0 ranks"),
        ({"rank": 2, "ranks": 2}, "rank must be from 0 to 1, not 2"),
        ({"rank": -1}, "rank must be from 0 to 0, not -1"),
        ({"ranks": 8}, "each of 8 ranks gets 1 images, which 2 per class do not divide"),
        ({"seed": -1}, "seed must be at least 0, not -1"),
        ({"batch_size": 200, "per_class": 20}, "96 images do not fill one batch of 200: choose a smaller batch_size"),
        ({"batches": 0}, "an epoch has at least one batch, not 0"),
        ({"batch_size": 7}, "2 images per class do not divide a batch of 7"),
        ({"batch_size": 0}, "do not divide a batch of 0"),
        ({"per_class": 0}, "0 images per class do not divide"),
        ({"batch_size": 48}, "a batch of 48 with 2 per class needs 24 classes, the data has 12"),
    ],
)
def test_impossible_settings_are_refused(settings, message):
    with pytest.raises(UserError, match=message):
        build("class_balanced", **settings)


def test_negative_epochs_are_refused():
    with pytest.raises(UserError, match="epoch must be at least 0, not -1"):
        build("class_balanced").set_epoch(-1)


def test_impossible_data_is_refused():
    with pytest.raises(UserError, match="no class has two images"):
        samplers.ClassRandom(torch.arange(9), batch_size=3)
    with pytest.raises(UserError, match="at least 2 images, not 1"):
        samplers.ClassRandom(LABELS, batch_size=1)
    with pytest.raises(UserError, match="there are no images"):
        samplers.ClassBalanced(torch.tensor([], dtype=torch.int64), batch_size=2)
    with pytest.raises(UserError, match="batch_size must be positive, not 0"):
        samplers.CategoryRandom(LABELS, batch_size=0)


@pytest.mark.plain
@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (torch.ones(8), "integers"),
        (torch.ones(4, 2, dtype=torch.int64), "labels must be a vector"),
        ("0011", "not one string"),
    ],
)
def test_labels_must_be_a_vector_of_integers(labels, message):
    with pytest.raises(UserError, match=message):
        samplers.ClassBalanced(labels, batch_size=2)


def test_the_catalogue_builds_by_name_and_refuses_what_it_does_not_know():
    assert samplers.names() == sorted(samplers.MEMBERS)
    with pytest.raises(UserError, match="unknown sampler 'class_balance': did you mean 'class_balanced'"):
        samplers.build("class_balance", labels=LABELS)
    with pytest.raises(UserError, match="unknown setting of class_balanced 'per_clas': did you mean 'per_class'"):
        samplers.build("class_balanced", labels=LABELS, per_clas=2)
    with pytest.raises(UserError, match="unknown setting of ClassBalanced 'sed': did you mean 'seed'"):
        samplers.ClassBalanced(LABELS, sed=2)
    with pytest.raises(UserError, match="sampler 'frechet' needs bank"):
        samplers.build("frechet", labels=LABELS)
    with pytest.raises(UserError, match="sampler 'category_pairs' needs categories"):
        samplers.build("category_pairs", labels=LABELS)


def test_needs_bank_names_the_samplers_that_choose_by_embeddings():
    needing = {name for name in samplers.names() if samplers.needs_bank(name)}
    assert needing == {"distribution_match", "frechet", "coreset", "d2_coreset"}
