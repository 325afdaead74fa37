"""Networks are fetched once from the Hugging Face Hub, here a server on loopback, and stay what they were."""

import json
import threading
from hashlib import sha1
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
import torch

from lookalike import models
from lookalike.errors import UserError
from lookalike.models.backbones import hub
from tests.missing import missing

try:
    import huggingface_hub.constants
except ImportError:
    missing("transformers is not installed (extra: hf)")

from tests.fixtures.tiny_networks import write

REVISION = "0123456789abcdef0123456789abcdef01234567"


class Server(ThreadingHTTPServer):
    """As much of the hub as a download needs; `files` by repository, `gated` repositories, and all requests."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Answer)
        self.files, self.gated, self.seen, self.revision = {}, set(), [], REVISION

    @property
    def address(self):
        return f"http://127.0.0.1:{self.server_port}"


class Answer(BaseHTTPRequestHandler):
    def log_message(self, *_):
        """Silent."""

    def do_HEAD(self):
        self.answer(body=False)

    def do_GET(self):
        self.answer(body=True)

    def answer(self, body):
        if self.path.count("/") < 5:  # is anybody there?
            self.send_response(204)
            self.end_headers()
            return
        owner, name, _, revision, file = self.path.lstrip("/").split("/", 4)
        repository, error, content = f"{owner}/{name}", None, None
        self.server.seen.append((self.command, repository, revision, file))
        if repository not in self.server.files:
            error = "RepoNotFound"
        elif repository in self.server.gated and self.headers.get("authorization") != "Bearer hf_agreed":
            error = "GatedRepo"
        else:
            content = self.server.files[repository].get(file)
            error = "EntryNotFound" if content is None else None
        self.send_response(200 if error is None else 401 if error == "GatedRepo" else 404)
        if error is not None:
            self.send_header("X-Error-Code", error)
        self.send_header("X-Repo-Commit", self.server.revision)
        self.send_header("ETag", f'"{sha1(content or b"").hexdigest()}"')
        self.send_header("Content-Length", str(len(content or b"")))
        self.end_headers()
        if body and content is not None:
            self.wfile.write(content)


@pytest.fixture
def server(tmp_path, monkeypatch):
    server = Server()
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    monkeypatch.setenv("LOOKALIKE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_TOKEN", "")
    monkeypatch.setenv("HF_ENDPOINT", server.address)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dinov2")
    write("dinov2", folder)
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_fetched_once_recorded_and_checked(server, files, tmp_path):
    server.files["facebook/dinov2-small"] = files
    assert not models.available("dinov2_small")
    network = models.build("dinov2_small", weights="pretrained")
    assert models.available("dinov2_small")
    record = json.loads(next((tmp_path / "cache" / "backbones").iterdir()).read_text())
    assert record["revision"] == REVISION
    assert set(record["sha256"]) == {"config.json", "preprocessor_config.json", "model.safetensors"}
    assert {revision for *_, revision, _ in server.seen[1:]} <= {REVISION, "main"}
    before, server.revision = len(server.seen), "f" * 40  # what the hub has now is of no concern
    again = models.build("dinov2_small", weights="pretrained")
    assert len(server.seen) == before
    assert all(torch.equal(value, network.state_dict()[key]) for key, value in again.state_dict().items())
    weights = hub.find("facebook/dinov2-small") / "model.safetensors"
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.unlink()
    weights.write_bytes(content)
    with pytest.raises(UserError, match=r"is not the model\.safetensors of facebook/dinov2-small that was fetched"):
        models.build("dinov2_small", weights="pretrained")


def test_a_folder_to_copy_needs_nothing_else(server, files, tmp_path):
    server.files["someone/network"] = files
    folder = hub.fetch("hf:someone/network", tmp_path / "copied")
    del server.files["someone/network"]
    expected = models.build(f"hf:{folder}", weights="pretrained")
    assert expected.preprocessing.crop == 56
    with pytest.raises(UserError, match="is not empty: choose a new folder"):
        hub.fetch("hf:someone/network", folder)
    (folder / "config.json").write_text((folder / "config.json").read_text() + "\n")
    with pytest.raises(UserError, match=r"config\.json is not the config\.json of .* that was fetched first"):
        models.build(f"hf:{folder}", weights="pretrained")


def test_weights_without_safetensors_are_read_as_plain_tensors(server, files, tmp_path):
    from safetensors.torch import load

    torch.save(load(files["model.safetensors"]), tmp_path / "old.bin")
    old = {name: content for name, content in files.items() if name != "model.safetensors"}
    server.files |= {"a/new": files, "a/old": {**old, "pytorch_model.bin": (tmp_path / "old.bin").read_bytes()}}
    new, old = (models.build(f"hf:a/{name}", weights="pretrained").state_dict() for name in ("new", "old"))
    assert all(torch.equal(value, old[key]) for key, value in new.items())


@pytest.mark.parametrize("absent", ["preprocessor_config.json", "model.safetensors"])
def test_a_repository_that_is_not_whole(server, files, absent):
    server.files["a/b"] = {name: content for name, content in files.items() if name != absent}
    with pytest.raises(UserError, match=r"hf:a/b has no (preprocessor_config\.json|weights that can be read)"):
        models.build("hf:a/b", weights="pretrained")
    assert hub.find("a/b") is None


def test_gated_private_and_unreachable(server, files, tmp_path, monkeypatch):
    gated = "facebook/dinov3-vits16-pretrain-lvd1689m"
    server.files[gated], server.gated = files, {gated}
    with pytest.raises(UserError, match=r"is gated: agree to its terms on its page .* set HF_TOKEN"):
        hub.fetch("dinov3_small")
    monkeypatch.setenv("HF_TOKEN", "hf_agreed")
    assert (hub.fetch("dinov3_small", tmp_path / "agreed") / "lookalike.json").is_file()
    with pytest.raises(UserError, match="has no repository nobody/nothing, or it is private: set HF_TOKEN"):
        models.build("hf:nobody/nothing")
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(UserError) as caught:
        models.build("clip_b16", weights="pretrained")
    assert str(caught.value) == (
        "clip_b16 is not on this machine, and the Hugging Face Hub cannot be reached: where it can, run lookalike "
        "backbones fetch clip_b16 --to clip_b16, copy the folder clip_b16 here, and give --backbone hf:clip_b16"
    )
