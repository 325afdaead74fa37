"""Networks of the Hugging Face Hub: fetched once, by huggingface_hub into its own cache, and from then on the same.

At the first fetch the revision and the digest of every file are recorded. Later runs take that revision and compare the
digests, so that nobody is given other weights under the same name. A folder that was copied brings its own record.
"""

import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lookalike.cache import cache_folder, make_folder
from lookalike.errors import UserError, check, install, unknown
from lookalike.files import read_json, sha256, write_text
from lookalike.models.backbones.known import KNOWN

RECORD = "lookalike.json"  # of a folder that was fetched to be copied
CONFIG, PROCESSOR = "config.json", "preprocessor_config.json"
INDEX = "model.safetensors.index.json"
WEIGHTS = ("model.safetensors", INDEX, "pytorch_model.bin")  # the first that is there
PATIENCE = 10  # seconds
Get = Callable[[str], Path]


def folder(source: str) -> Path:
    """The folder of a network: `source` itself, or that of the repository of this name, which is fetched if need be."""
    if Path(source).is_dir():
        _check_digests(Path(source), Path(source) / RECORD, source)
        return Path(source)
    check(source.count("/") == 1 and source[0] not in "./~", f"there is no network hf:{source}: no such folder")
    place = find(source) or _files(source, _revision(source), local=False)
    _check_digests(place, _record(source), source)
    return place


def find(repository: str) -> Path | None:
    """The folder of a repository in the cache of the hub; None: it is not on this machine, or not whole."""
    try:
        return _files(repository, _revision(repository), local=True)
    except (FileNotFoundError, UserError):
        return None


def fetch(name: str, to: Path | None = None) -> Path:
    """The files of a known network, or of any repository, checked; with `to` copied there with their record."""
    if name not in KNOWN and not name.startswith("hf:") and "/" not in name:
        raise unknown("network", name, KNOWN)
    repository = KNOWN[name].repository if name in KNOWN else name.removeprefix("hf:")
    check(
        to is None or not Path(repository).is_dir(),
        f"{repository} is a folder on this machine: copy it, there is nothing to fetch",
    )
    place = folder(repository)
    if to is None:
        return place
    free = not to.exists() or (to.is_dir() and not any(to.iterdir()))
    check(free, f"{to} is not empty: choose a new folder")
    to.mkdir(parents=True, exist_ok=True)
    for file in _names(place):
        shutil.copyfile(place / file, to / file)
    shutil.copyfile(_record(repository), to / RECORD)
    return to


def _files(repository: str, revision: str | None, local: bool) -> Path:
    """The folder with config, preprocessing and weights of one revision, each fetched unless `local`."""
    hub = library()
    endpoint = os.environ.get("HF_ENDPOINT") or hub.constants.ENDPOINT
    if not local and not reachable(hub, endpoint):
        raise UserError(_elsewhere(repository))

    def get(file: str) -> Path:
        nonlocal revision
        with explained(repository, hub.errors, local):
            path = hub.hf_hub_download(repository, file, revision=revision, local_files_only=local, endpoint=endpoint)
        path = Path(path)
        revision = revision or path.parent.name  # the same for all files
        return path

    place = get(CONFIG).parent
    _first(get, (PROCESSOR,), f"hf:{repository} has no {PROCESSOR}, so that nobody knows which pixels it takes")
    weights = _first(get, WEIGHTS, f"hf:{repository} has no weights that can be read: none of {', '.join(WEIGHTS)}")
    for part in _parts(weights):
        get(part)
    record = _record(repository)
    if not record.exists():
        make_folder(record.parent)
        digests = {name: sha256(place / name) for name in _names(place)}
        facts = {"repository": repository, "revision": place.name, "sha256": digests}
        write_text(record, json.dumps(facts, indent=2) + "\n")
    return place


def _first(get: Get, names: tuple[str, ...], missing: str) -> Path:
    for name in names:
        try:
            return get(name)
        except FileNotFoundError:
            continue
    raise UserError(missing)


def _parts(weights: Path) -> set[str]:
    """The further files that an index of weights names."""
    if weights.name != INDEX:
        return set()
    names = set(read_json(weights)["weight_map"].values())
    check(all(Path(name).name == name for name in names), f"{weights} names files of other folders")
    return names


def _names(place: Path) -> list[str]:
    """The files of a network in its folder."""
    weights = next(place / name for name in WEIGHTS if (place / name).is_file())
    return [CONFIG, PROCESSOR, weights.name, *sorted(_parts(weights))]


def _record(repository: str) -> Path:
    return cache_folder() / "backbones" / f"{repository.replace('/', '--')}.json"


def _revision(repository: str) -> str | None:
    record = _record(repository)
    return str(read_json(record)["revision"]) if record.exists() else None


def _check_digests(place: Path, record: Path, source: str) -> None:
    """Refuse files that are not those of the first fetch."""
    if not record.exists():
        return
    known: Mapping[str, str] = read_json(record)["sha256"]
    for name, digest in known.items():
        same = (place / name).is_file() and sha256(place / name) == digest
        check(same, f"{place / name} is not the {name} of {source} that was fetched first: delete it and fetch again")


@contextmanager
def explained(repository: str, errors: Any, local: bool) -> Iterator[None]:
    """The errors of the hub as one line that says what to do; a file that is not there is a FileNotFoundError."""
    try:
        yield
    except errors.GatedRepoError as error:
        raise UserError(
            f"{repository} is gated: agree to its terms on its page of the Hugging Face Hub, and set HF_TOKEN to a "
            "token of that account, or run hf auth login"
        ) from error
    except (errors.RepositoryNotFoundError, errors.HFValidationError) as error:
        raise UserError(
            f"the Hugging Face Hub has no repository {repository}, or it is private: set HF_TOKEN"
        ) from error
    except errors.RemoteEntryNotFoundError as error:
        raise FileNotFoundError(str(error)) from error
    except (errors.LocalEntryNotFoundError, errors.HfHubHTTPError, OSError) as error:
        if local:
            raise FileNotFoundError(str(error)) from error
        raise UserError(_elsewhere(repository)) from error


def reachable(hub: Any, endpoint: str) -> bool:
    """Whether the hub answers; a download would try again and again."""
    try:
        hub.get_session().head(endpoint, timeout=PATIENCE)
    except Exception:  # of the client library, whichever it is
        return False
    return True


def _elsewhere(repository: str) -> str:
    name = next((name for name, known in KNOWN.items() if known.repository == repository), repository)
    short = name.rpartition("/")[2]
    return (
        f"{name} is not on this machine, and the Hugging Face Hub cannot be reached: where it can, run lookalike "
        f"backbones fetch {name} --to {short}, copy the folder {short} here, and give --backbone hf:{short}"
    )


def library() -> Any:
    try:
        import huggingface_hub
        import huggingface_hub.constants
        import huggingface_hub.errors
    except ImportError as error:
        raise UserError(f"networks of the Hugging Face Hub need transformers: {install('hf')}") from error
    return huggingface_hub
