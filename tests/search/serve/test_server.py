"""The socket and the limits of a server's process."""

import resource
import socket
from pathlib import Path

import pytest

from lookalike.errors import UserError
from lookalike.search.serve.server import allow_files, bound
from lookalike.search.serve.settings import Settings
from tests.search.serve.client import Server
from tests.search.serve.crashes import children


def test_the_socket_goes_to_workers_and_is_taken_again_at_once(tmp_path):
    with bound(Settings(tmp_path, port=0)) as listener:
        assert listener.get_inheritable()
        assert listener.getsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR) == 1
        assert listener.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN) == 1
        assert listener.family == socket.AF_INET
        port = listener.getsockname()[1]
        with pytest.raises(UserError, match=f"cannot listen on 127.0.0.1 port {port} .*choose another with --port"):
            bound(Settings(tmp_path, port=port))
    with pytest.raises(UserError, match="port 70000"):
        bound(Settings(tmp_path, port=70_000))


def test_a_single_worker_is_the_process_itself_and_believes_no_header_about_its_callers(server):
    assert children(server.process.pid) == []
    forged = server("GET", "/v1/health?forged", X_Forwarded_For="192.0.2.7", X_Forwarded_Proto="https")
    assert "server" not in forged.headers
    request = forged.headers["x-request-id"]
    (line,) = server.wait_for(lambda: [one for one in server.log_lines() if one["request"] == request], "log line")
    assert line["client"] == "127.0.0.1"


LOW = """
import resource, torch
from multiprocessing.util import Finalize
resource.setrlimit(resource.RLIMIT_NOFILE, (300, 900))
torch.set_num_threads(3)
Finalize(None, lambda: open("{}", "w").write(str(torch.get_num_threads())), exitpriority=1)
"""


def test_a_server_opens_as_many_files_as_its_connections_take_and_computes_in_one_thread(shop, tmp_path):
    before = LOW.format(tmp_path / "threads")
    with Server(shop, limits={"connections": 250}, before=before) as server:
        limits = Path(f"/proc/{server.process.pid}/limits").read_text()
    (line,) = (line for line in limits.splitlines() if line.startswith("Max open files"))
    assert line.split()[3:5] == ["756", "900"]
    assert (tmp_path / "threads").read_text() == "1"


@pytest.mark.parametrize(
    ("soft", "hard", "expected"),
    [(1024, 4096, 2304), (1024, 2000, 2000), (9000, 9999, None), (1024, -1, 2304), (-1, -1, None)],
)
def test_the_limit_of_open_files_is_raised_as_far_as_the_system_allows(monkeypatch, soft, hard, expected):
    chosen = []
    monkeypatch.setattr(resource, "getrlimit", lambda _: (soft, hard))
    monkeypatch.setattr(resource, "setrlimit", lambda _, limits: chosen.append(limits))
    allow_files(2304)
    assert chosen == ([] if expected is None else [(expected, hard)])
