"""Networks are fetched once from the Hugging Face Hub, here a server on loopback, and stay what they were."""

import json
import shutil
import threading
from base64 import b64decode
from hashlib import sha1
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
import torch
import yaml
from typer.testing import CliRunner

from lookalike import models
from lookalike.cli import app
from lookalike.errors import UserError
from lookalike.models import Architecture, Model
from lookalike.models.backbones import hub, licence
from lookalike.models.backbones.known import KNOWN
from lookalike.search import Index
from tests.cli.photos import folder
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
        self.files, self.private, self.gated, self.seen, self.revision = {}, {}, set(), [], REVISION

    @property
    def address(self):
        return f"http://127.0.0.1:{self.server_port}"


class Answer(BaseHTTPRequestHandler):
    def log_message(self, *_):
        """Silent."""

    def do_HEAD(self):
        self.answer(body=False)

    def do_GET(self):
        if self.path.startswith("/api/"):  # is there such a repository?
            self.reply(401, {"error": "Invalid credentials"})
        else:
            self.answer(body=True)

    def do_POST(self):
        """As much of the hub as an upload needs: `files` get what is committed."""
        content = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("authorization") != "Bearer hf_agreed":
            self.reply(401, {"error": "Invalid credentials"})
        elif self.path == "/api/repos/create":
            wish = json.loads(content)
            name = f"{wish['organization']}/{wish['name']}"
            self.server.files.setdefault(name, {})
            self.server.private[name] = wish.get("visibility") == "private"
            self.reply(200, {"url": f"{self.server.address}/{name}"})
        elif self.path == "/api/validate-yaml":
            assert yaml.safe_load(json.loads(content)["content"].split("---")[1])["library_name"] == "lookalike"
            self.reply(200, {"errors": [], "warnings": []})
        elif "/preupload/" in self.path:
            names = [file["path"] for file in json.loads(content)["files"]]
            self.reply(200, {"files": [{"path": n, "uploadMode": "regular", "shouldIgnore": False} for n in names]})
        else:
            owner, name = self.path.split("/")[3:5]
            for line in map(json.loads, content.splitlines()):
                if line["key"] == "file":
                    self.server.files[f"{owner}/{name}"][line["value"]["path"]] = b64decode(line["value"]["content"])
            self.reply(
                200,
                {"success": True, "commitUrl": f"{self.server.address}/{owner}/{name}/commit/1", "commitOid": REVISION},
            )

    def reply(self, status, content):
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

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


def test_what_cannot_be_fetched_is_refused_before_anything_is_written(tmp_path):
    with pytest.raises(UserError, match="unknown network 'dinov2_smal': did you mean 'dinov2_small'"):
        hub.fetch("dinov2_smal", tmp_path / "to")
    write("dinov2", tmp_path / "here")
    with pytest.raises(UserError, match="here is a folder on this machine: copy it"):
        hub.fetch(f"hf:{tmp_path / 'here'}", tmp_path / "to")
    assert not (tmp_path / "to").exists()


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


@pytest.fixture
def small():
    model = Model.create(Architecture("conv4", {"channels": 1, "width": 4}, dim=4))
    model.metrics, model.classes, model.recipe = {"recall@1": 0.5, "map@r": 0.25}, ("a", "b"), "seed = 1\n"
    return model


def test_a_model_is_pushed_and_loaded_by_its_name(server, small, monkeypatch):
    with pytest.raises(UserError, match="set HF_TOKEN to a token that may write there"):
        small.push_to_hub("me/shoes")
    monkeypatch.setenv("HF_TOKEN", "hf_agreed")
    assert small.push_to_hub("me/shoes", private=True) == f"{server.address}/me/shoes"
    assert server.private["me/shoes"]
    assert set(server.files["me/shoes"]) == {"model.json", "weights.safetensors", "recipe.toml", "README.md"}
    for loaded in (Model.from_pretrained("me/shoes"), Model.load("hf:me/shoes")):
        assert loaded.fingerprint == small.fingerprint
        assert (loaded.metrics, loaded.recipe) == (small.metrics, small.recipe)
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    assert Model.load("hf:me/shoes").fingerprint == small.fingerprint, "without a connection it comes from the cache"
    card = server.files["me/shoes"]["README.md"].decode()
    front = yaml.safe_load(card.split("---")[1])
    assert front["model-index"][0]["results"][0]["metrics"][0] == {"type": "recall@1", "value": 0.5}
    assert huggingface_hub.ModelCard(card).data.license is None
    assert "No weights are published for conv4" in card
    assert "choose a licence" in card


def test_the_card_names_the_licence_of_the_weights(tmp_path):
    Model.create(Architecture("efficientnet_lite0", dim=4)).save(tmp_path / "model")
    card = (tmp_path / "model" / "README.md").read_text()
    assert yaml.safe_load(card.split("---")[1])["license"] == "apache-2.0"
    assert "Published weights of efficientnet_lite0: Apache-2.0." in card


def test_terms_that_the_hub_has_no_name_for_are_named(tmp_path):
    Model.create(Architecture("resnet18", dim=4)).save(tmp_path / "model")
    front = yaml.safe_load((tmp_path / "model" / "README.md").read_text().split("---")[1])
    assert front["license"] == "other"
    assert front["license_name"].startswith("not-stated")


def test_the_commands_push_a_model_and_index_with_it(server, small, monkeypatch, tmp_path):
    """`hf:…` is fetched from the hub, not from the folder that was pushed."""

    def lookalike(*words):
        return CliRunner().invoke(app, [str(word) for word in words])

    small.save(tmp_path / "model")
    refused = lookalike("push", tmp_path / "model", "me/shoes", "--private")
    assert "set HF_TOKEN to a token that may write there" in str(refused.exception)
    monkeypatch.setenv("HF_TOKEN", "hf_agreed")
    pushed = lookalike("push", tmp_path / "model", "me/shoes", "--private")
    assert pushed.exit_code == 0, pushed.output
    assert f"{server.address}/me/shoes: use it with hf:me/shoes" in pushed.output
    assert server.private["me/shoes"]
    shutil.rmtree(tmp_path / "model")
    indexed = lookalike("index", "hf:me/shoes", folder(tmp_path / "photos"), "--out", tmp_path / "shop.index")
    assert indexed.exit_code == 0, indexed.output
    assert Index.open(tmp_path / "shop.index").identity.fingerprint == small.fingerprint


def test_every_network_with_weights_has_a_licence():
    published = [name for name, kind in models.MEMBERS.items() if kind.published.files]
    assert published
    assert [name for name in [*published, *KNOWN] if not licence(name)] == []


def test_a_local_folder_is_a_model_too(small, tmp_path):
    small.save(tmp_path / "model")
    assert Model.from_pretrained(str(tmp_path / "model")).fingerprint == small.fingerprint


def test_a_repository_that_is_no_model(server, files, small, monkeypatch):
    server.files["a/b"] = files
    with pytest.raises(UserError, match=r"there is no model\.json of hf:a/b: it is not a model of lookalike"):
        Model.from_pretrained("a/b")
    with pytest.raises(UserError, match="has no repository nobody/nothing, or it is private"):
        Model.load("hf:nobody/nothing")
    with pytest.raises(UserError, match="the name of a repository is OWNER/NAME, not shoes"):
        small.push_to_hub("shoes")
    with pytest.raises(UserError, match="there is no model hf:nowhere: neither a folder nor OWNER/NAME"):
        Model.load("hf:nowhere")
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(UserError, match="cannot be reached, and it has not been fetched before"):
        Model.load("hf:me/other")
