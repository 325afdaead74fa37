"""Models on the Hugging Face Hub: the folder of a model is a repository there.

What is fetched is loaded as any folder of a stranger is: nothing in it is run, and its fingerprint must fit.
"""

import os
from pathlib import Path
from typing import Any

from lookalike.errors import UserError, check
from lookalike.models.backbones import hub
from lookalike.models.model_folder import CARD, FILES, RECIPE, read

PREFIX = "hf:"
OPTIONAL = (RECIPE, CARD)


def push(folder: Path, repository: str, private: bool) -> str:
    """Upload a model folder to a repository, which is created if need be; returns the address of its page."""
    read(folder)
    name = repository.removeprefix(PREFIX)
    check(name.count("/") == 1, f"the name of a repository is OWNER/NAME, not {repository}")
    library = hub.library()
    api = library.HfApi(endpoint=_endpoint(library))
    try:
        page = api.create_repo(name, private=private, exist_ok=True)
        api.upload_folder(
            repo_id=name, folder_path=folder, allow_patterns=list(FILES), commit_message="A model of lookalike"
        )
    except Exception as error:  # of the hub and of the client beneath it, which changes
        refused = getattr(getattr(error, "response", None), "status_code", None) in (401, 403)
        what = (
            "it refused: set HF_TOKEN to a token that may write there, or run hf auth login"
            if refused
            else " ".join(str(error).split())[:200]
        )
        raise UserError(f"the model was not uploaded to {name} on the Hugging Face Hub: {what}") from error
    return str(page)


def folder(source: str | Path) -> Path:
    """The folder of a model: `source` itself, or for hf:OWNER/NAME its files, fetched into the cache of the hub."""
    if not str(source).startswith(PREFIX):
        return Path(source)
    name = str(source).removeprefix(PREFIX)
    if Path(name).is_dir():
        return Path(name)
    check(name.count("/") == 1 and name[0] not in "./~", f"there is no model {source}: neither a folder nor OWNER/NAME")
    library = hub.library()
    local = not hub.reachable(library, _endpoint(library))
    reason = (
        "the Hugging Face Hub cannot be reached, and it has not been fetched before"
        if local
        else "it is not a model of lookalike"
    )
    place = Path()
    for file in FILES:
        try:
            place = _file(library, name, file, local).parent
        except FileNotFoundError:
            check(file in OPTIONAL, f"there is no {file} of {source}: {reason}")
    return place


def _file(library: Any, name: str, file: str, local: bool) -> Path:
    with hub.explained(name, library.errors, local):
        path = library.hf_hub_download(name, file, endpoint=_endpoint(library), local_files_only=local)
        return Path(path)


def _endpoint(library: Any) -> str:
    return os.environ.get("HF_ENDPOINT") or str(library.constants.ENDPOINT)
