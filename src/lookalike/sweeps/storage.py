"""Where a search keeps its trials: a local file, or any database when several machines work on it.

Workers send a heartbeat; a trial whose worker has died is resumed by another, from its checkpoint if that is within
reach.
"""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lookalike.errors import UserError, install

TRIES = 3  # of a trial whose worker dies
GRACE = 3  # heartbeats missed, then a worker counts as dead


def library() -> Any:
    try:
        import optuna
    except ImportError:
        raise UserError(f"optuna is not installed: {install('tune')}") from None
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return optuna


def address(url: str | None, out: Path) -> str:
    """The address of the database: `url`, or a file in the folder of the search.

    >>> address("postgresql://me@db/tuning", Path("out")), address(None, Path("out"))
    ('postgresql+psycopg://me@db/tuning', 'sqlite:///out/tune.db')
    """
    if url is None:
        return f"sqlite:///{out / 'tune.db'}"
    kind, colon, rest = url.partition("://")
    if not colon:
        raise UserError(f"--storage is an address such as postgresql://user@host/database, not '{url}'")
    return f"postgresql+psycopg://{rest}" if kind in ("postgres", "postgresql") else url


@contextmanager
def opened(url: str, heartbeat: int) -> Iterator[Any]:
    """The storage behind an address, closed at the end."""
    optuna = library()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)  # heartbeats, since 2021
        try:
            storage = optuna.storages.RDBStorage(
                url, heartbeat_interval=heartbeat, grace_period=GRACE * heartbeat, heartbeat_stale_trial_callback=again
            )
        except Exception as error:  # of any driver
            reason = (str(error).strip() or type(error).__name__).splitlines()[0]
            raise UserError(f"cannot open the storage of the search: {_without_password(reason)}") from None
        try:
            yield storage
        finally:
            storage.remove_session()
            storage.engine.dispose()


def _without_password(reason: str) -> str:
    import re

    return re.sub(r"://[^@\s]*@", "://…@", reason)


def again(study: Any, trial: Any) -> None:
    """The same point once more, for a trial whose worker died."""
    tries = trial.user_attrs.get("tries", 1)
    if tries < TRIES:
        repeat(study, trial, tries + 1)


def repeat(study: Any, trial: Any, tries: int) -> None:
    """Let the next free worker continue a trial; its folder is that of the first try."""
    first = trial.user_attrs.get("continues", trial.number)
    study.enqueue_trial(trial.params, user_attrs={"continues": first, "tries": tries})
