"""The model of an index: its files are part of the truth, a folder of them is derived."""

import tempfile
from pathlib import Path

from lookalike import files
from lookalike.errors import UserError, check
from lookalike.models import Model, model_folder
from lookalike.models.fingerprint import WRITTEN
from lookalike.search.items import Identity
from lookalike.search.stores import Store


def model_content(model: Model) -> dict[str, bytes]:
    """The files of a model folder."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "model"
        model.save(folder)
        return {file.name: file.read_bytes() for file in sorted(folder.iterdir())}


def identity_of(model: Model) -> Identity:
    """What an index says of the vectors of a model."""
    dim = getattr(model.embedder, "dim", None)
    check(isinstance(dim, int), "the model does not say how many dimensions its vectors have: give its embedder a dim")
    return Identity(model.fingerprint, model.geometry, int(dim))  # type: ignore[arg-type]


def load_model(store: Store, fingerprint: str, place: Path) -> Model:
    """The model of a generation, from its folder or from the store, which fills the folder again.

    The index may come from anywhere: what it calls its model and the files of it decides no path.
    """
    _refuse(WRITTEN.fullmatch(fingerprint) is not None, f"{fingerprint!r} is not a fingerprint")
    folder = place / fingerprint
    try:
        model = Model.load(folder)
        if model.fingerprint == fingerprint:
            return model
    except UserError:
        pass  # missing or damaged: the store has it
    content = store.documents.model(fingerprint)
    check(bool(content), "the index has lost the files of its model: restore it from a backup")
    for name in content:
        _refuse(name in model_folder.FILES, f"{name!r} is not a file of a model")
    _refuse(not place.is_symlink(), f"'{place}' is a link, and leads to a folder of yours")
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise files.cannot_write(place, error) from error
    with files.whole_folder(folder) as partial:
        for name, part in content.items():
            (partial / name).write_bytes(part)
        model = Model.load(partial)
        _refuse(model.fingerprint == fingerprint, "it holds another model than the index was made with")
    return model


def _refuse(sound: bool, reason: str) -> None:
    check(sound, f"the model of this index cannot be used ({reason}: it is damaged, or was tampered with)")
