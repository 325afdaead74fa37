"""What was proven is made once more of all classes, half of which were kept for the proof; its figures stay."""

from dataclasses import replace

from lookalike.data import Dataset
from lookalike.fit import taught_labels
from lookalike.fit.plan import RunClock
from lookalike.fit.result_content import header
from lookalike.fit.train_model import TrainedModel, train_model
from lookalike.models import Model
from lookalike.protocols.class_disjoint import Parts
from lookalike.recipe import Recipe, build, to_toml
from lookalike.runs import OpenRun, RunFolder, checkpoint
from lookalike.training.blend import between
from lookalike.training.train import Stop

FOLDER = "all_classes"  # within that of the run: a training with a checkpoint of its own
SENTENCE = (
    "Delivered is the same, made once more of all classes, the test classes too (--refit-on-all): the figures are "
    "those of the proof, without them."
)


def refit(trained: TrainedModel, everything: Dataset, parts: Parts, run: OpenRun, stop: Stop) -> Model:
    """The delivered model as `everything` makes it: as many steps, the same blend, the same readout."""
    whole = taught_labels.once_more(everything, trained.recipe, build.model(trained.recipe), run)
    run.note(f"once more with all {whole.present:,} classes, {len(whole):,} images")
    if trained.uses_training and trained.ending.steps:
        network = _trained(trained, parts._replace(train=whole, validation=None), run, stop)
    else:
        network = build.model(trained.recipe)
    return replace(trained.refit(network, whole), classes=whole.label_names)


def _trained(trained: TrainedModel, parts: Parts, run: OpenRun, stop: Stop) -> Model:
    recipe = _fixed(trained.recipe, trained.ending.steps, trained.share)
    folder = RunFolder(run.folder.path / FOLDER)
    with folder.claimed():
        own = folder.begin("either", to_toml(recipe, header()), run.tell)
        model = train_model(recipe, build.model(recipe), parts, own, RunClock.now(), stop).model
        if recipe.train.blend:
            start = checkpoint.load_tensors(folder.start)
            model.embedder.load_state_dict(between(start, model.embedder.state_dict(), trained.share))
    return model


def _fixed(recipe: Recipe, steps: int, share: float) -> Recipe:
    """So many steps without a clock or validation; a blend keeps the weights at the start."""
    blend = (share,) if share < 1 else ()
    return replace(recipe, train=replace(recipe.train, steps=steps, epochs=None, minutes=None, blend=blend))
