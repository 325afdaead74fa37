"""`lookalike fit`: one whole run; everything that can go wrong is one line, exit code 2, before the work begins."""

import json
import os
import resource
import shutil
import signal
import time
import tomllib

import pytest
from PIL import Image

from lookalike.cli import running
from lookalike.data.images.source import Files
from lookalike.errors import UserError
from lookalike.fit.choose import choose
from lookalike.runs import RunFolder
from tests.cli.conftest import SHORT
from tests.cli.photos import folder
from tests.cli.processes import Death, Lookalike


def test_a_whole_run_leaves_everything_behind(finished):
    run, completed = finished
    names = {path.name for path in run.iterdir()}
    assert names >= {
        "recipe.toml",
        "log.jsonl",
        "audit.json",
        "checkpoint",
        "model",
        "result.json",
        "report.html",
        "test.npz",
    }
    result = json.loads((run / "result.json").read_text())
    assert [entry["name"] for entry in result["results"]] == ["this model", "untrained network", "raw pixels"]
    assert f"{result['results'][0]['metrics']['recall@1']:.3f}" in completed.out
    assert "never seen in training" in completed.out
    assert completed.out.splitlines()[0].endswith("searches put the right class first, on classes the model never saw.")
    assert result["training"]["steps"] == 6
    assert result["training"]["seed"] == 3
    recipe = tomllib.loads((run / "recipe.toml").read_text())
    assert recipe["seed"] == 3
    assert recipe["train"]["steps"] == 6
    assert "validation recall@1" in completed.error
    assert not [line for line in completed.error.splitlines() if "Warning" in line]


def test_tensorboard_reads_what_was_written(finished):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    run, _ = finished
    written = EventAccumulator(str(run / "tensorboard"))
    written.Reload()
    events = [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]
    steps = [event for event in events if event["event"] == "step"]
    validations = [event for event in events if event["event"] == "validation"]
    for name, events in (("step/loss", steps), ("validation/map@r", validations)):
        scalars = written.Scalars(name)
        key = name.split("/")[1]
        assert [scalar.step for scalar in scalars] == [event["step"] for event in events]
        assert [scalar.value for scalar in scalars] == pytest.approx([event[key] for event in events], rel=1e-5)


def test_places_that_cannot_be_used(lookalike, photos, tmp_path, finished):
    file = tmp_path / "file"
    file.write_text("mine")
    lookalike("fit", photos, "--out", file / "run", *SHORT).refused("cannot make the folder")
    lookalike("fit", photos, "--out", file, *SHORT).refused("exists and is not a run")
    assert file.read_text() == "mine"
    full = tmp_path / "full"
    full.mkdir()
    (full / "thesis.txt").write_text("mine")
    for more in ((), ("--fresh",)):
        lookalike("fit", photos, "--out", full, *SHORT, *more).refused("exists and is not a run")
    assert (full / "thesis.txt").read_text() == "mine"
    run, _ = finished
    twice = lookalike("fit", photos, "--out", run, *SHORT)
    twice.refused("holds a run: continue it with --resume, replace it with --fresh")
    lookalike("fit", photos, "--out", tmp_path / "new", *SHORT, "--resume").refused("there is no run to resume")
    lookalike("fit", photos, "--out", run, "--resume", "--fresh").refused("give --resume or --fresh, not both")
    assert (run / "result.json").is_file()


def test_a_second_process_in_the_same_folder_is_refused(lookalike, photos, finished):
    run, _ = finished
    log = (run / "log.jsonl").read_bytes()
    with RunFolder(run).claimed():
        second = lookalike("fit", photos, "--out", run, *SHORT, "--seed", 3, "--resume")
    second.refused("another process is working in")
    assert (run / "log.jsonl").read_bytes() == log


def test_a_changed_recipe_is_not_resumed(lookalike, photos, finished):
    run, _ = finished
    again = ("fit", photos, "--out", run, *SHORT, "--seed", 3, "--resume")
    lookalike(*again, "--set", "optimiser.lr=0.5").refused("holds another run: optimiser.lr was", "and is now 0.5")
    lookalike(*again, "--set", "loss.name=triplet").refused("loss.name was multi_similarity and is now triplet")
    lookalike(*again[:-2], 4, "--resume").refused("seed was 3 and is now 4")
    lookalike("fit", "glyphs", *again[2:]).refused("data.source was", "and is now glyphs")
    assert (run / "model" / "weights.safetensors").is_file()


def test_a_gpu_that_is_not_there(lookalike, photos, tmp_path):
    import torch

    if torch.cuda.is_available():
        pytest.skip("there is one")
    lookalike("fit", photos, "--out", tmp_path / "run", "--device", "cuda").refused("no cuda device", "use cpu")
    lookalike("fit", photos, "--out", tmp_path / "run", "--device", "abacus").refused("there is no device 'abacus'")
    assert not (tmp_path / "run").exists()


def test_weights_that_cannot_be(lookalike, photos, tmp_path):
    import torch
    from safetensors.torch import save_file

    def refuses(weights, *words):
        changes = ("--set", f"model.weights={weights}", "--set", "model.backbone=conv4")
        lookalike("fit", photos, "--out", tmp_path / "run", *SHORT, *changes).refused(*words)
        assert not (tmp_path / "run").exists()

    refuses(tmp_path / "none.pth", "no weights at")
    (tmp_path / "words.pth").write_text("these are no weights")
    refuses(tmp_path / "words.pth", "cannot read weights from")
    torch.save([1, 2, 3], tmp_path / "list.pth")
    refuses(tmp_path / "list.pth", "list.pth")
    save_file({"another.weight": torch.zeros(3)}, tmp_path / "other.safetensors")
    refuses(tmp_path / "other.safetensors", "other.safetensors")
    refuses("pretrained", "no ImageNet weights for Conv4")


def test_data_that_cannot_be_learnt_from(lookalike, tmp_path):
    def refuses(source, *words):
        lookalike("fit", source, "--out", tmp_path / "run", *SHORT).refused(*words)
        shutil.rmtree(tmp_path / "run", ignore_errors=True)

    refuses(folder(tmp_path / "two", classes=2), "only 2 classes have two or more images", "at least 4: add classes")
    (tmp_path / "empty").mkdir()
    refuses(tmp_path / "empty", "empty")
    refuses(tmp_path / "nowhere", "nowhere")
    refuses("glyfs", "did you mean 'glyphs'")
    broken = folder(tmp_path / "broken", classes=4, each=2)
    for file in broken.rglob("*.png"):
        file.write_bytes(b"no image")
    refuses(broken, "can be read")


@pytest.mark.slow
def test_unreadable_images_are_left_out_and_told(lookalike, photos, tmp_path):
    some = tmp_path / "some"
    shutil.copytree(photos, some)
    files = sorted(some.rglob("*.png"))
    files[0].write_bytes(b"no image")
    files[40].write_bytes(files[40].read_bytes()[:60])
    before = Death("lookalike.fit.prove", "write_report")
    completed = lookalike("fit", some, "--out", tmp_path / "run", *SHORT, death=before)
    assert completed.code == -signal.SIGKILL, completed
    data = json.loads((tmp_path / "run" / "result.json").read_text())["data"]
    assert sum(data[f"{part}_images"] for part in ("train", "validation", "test")) == len(files) - 2
    assert "unreadable" in completed.error or "cannot be read" in completed.error


def test_a_cache_killed_half_way_is_built_again(photos, tmp_path):
    lookalike = Lookalike(tmp_path)
    dying = Death("lookalike.data.images.decoded_cache", "_one", 20)
    completed = lookalike("fit", photos, "--out", tmp_path / "run", "--no-audit", *SHORT, death=dying)
    assert completed.code == -signal.SIGKILL
    begun = Death("lookalike.training.loop:Loop", "advance", 2)
    completed = lookalike("fit", photos, "--out", tmp_path / "run", "--no-audit", *SHORT, "--resume", death=begun)
    assert completed.code == -signal.SIGKILL
    assert "training" in completed.error


def test_too_little_time_is_said(lookalike, photos, tmp_path):
    many = folder(tmp_path / "many", classes=30, each=3, noise=200)
    completed = lookalike("fit", many, "--out", tmp_path / "run", "--no-audit", "--minutes", 0.0001)
    assert completed.code == 0, completed.error
    assert "fine-tuning would need about" in completed.out
    lookalike("fit", photos, "--out", tmp_path / "other", "--no-audit", "--minutes", -1).refused("minutes")


@pytest.mark.slow
def test_a_full_disk_is_one_line_and_the_checkpoint_stays(lookalike, photos, tmp_path):
    """A limit on the size of files stands for a full disk: the first checkpoint fits, a later one does not."""
    run = tmp_path / "run"
    words = (
        "fit",
        photos,
        "--out",
        run,
        "--no-audit",
        *SHORT,
        "--set",
        "train.steps=400",
        "--set",
        "train.log_every=1",
    )
    running_ = lookalike.start(*words)
    assert running_.wait_for((run / "checkpoint" / "latest").is_file)
    pid = running_.process.pid
    # ignored in the child since Python starts: a write beyond the limit is an error, not a signal
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (200_000, resource.RLIM_INFINITY))
    completed = running_.end()
    line = completed.refused("free some space")
    assert "cannot save the checkpoint" in line
    completed = lookalike(
        *words[:-4],
        "--set",
        "train.steps=400",
        "--set",
        "train.log_every=1",
        "--resume",
        death=Death("lookalike.training.loop:Loop", "advance", 3),
    )
    assert "training, from step" in completed.error


@pytest.mark.slow
@pytest.mark.parametrize("data", ["glyphs", "photos"])
def test_minutes_are_respected(lookalike, photos, tmp_path, data):
    """The recipe would take longer. One core may be too slow for the glyphs: then nothing is trained."""
    if os.getloadavg()[0] > (os.cpu_count() or 1):
        pytest.skip("others are using this machine: a clock can only be tested on a quiet one")
    lookalike("audit", "glyphs")  # draws them
    source = photos if data == "photos" else data
    longer = ("--set", "train.patience=none", *(SHORT[2:] if data == "photos" else ()))
    began = time.monotonic()
    completed = lookalike("fit", source, "--out", tmp_path / "run", "--minutes", 0.5, *longer)
    spent = time.monotonic() - began
    if spent >= 75 and os.getloadavg()[0] > (os.cpu_count() or 1):
        pytest.skip("others began to use this machine")
    assert spent < 75  # a run that ignored its minutes would take much longer
    assert completed.code == 0, completed.error
    if data == "glyphs" and "fine-tuning would need about" in completed.out:
        return
    training = json.loads((tmp_path / "run" / "result.json").read_text())["training"]
    assert training["steps"] > 0
    assert spent > 12


WRONG = [
    ("optimiser.lrr=1", "unknown setting of adamw 'lrr': did you mean 'lr'"),
    ("train.stepz=1", "unknown key of train 'stepz': did you mean 'steps'"),
    ("trian.steps=1", "unknown key of a recipe 'trian': did you mean 'train'"),
    ("train.steps=many", "train.steps = 'many': it must be a whole number"),
    ("loss.name=tripplet", "unknown loss 'tripplet': did you mean 'triplet'"),
    ("loss.alpa=1", "did you mean 'alpha'"),
    ("loss.preset=paris", "unknown preset of multi_similarity 'paris'"),
    ("miner.name=semi_hard", "unknown miner 'semi_hard': did you mean 'semihard'"),
    ("miner=semihard", "miner = 'semihard': it must be a table"),
    ("sampler.name=class_balanced_", "did you mean 'class_balanced'"),
    ("sampler.batch=9", "unknown setting of class_balanced 'batch'"),
    ("optimiser.name=adan", "unknown optimiser 'adan': did you mean 'adam'"),
    ("schedule.name=cosinus", "unknown schedule 'cosinus': did you mean 'cosine'"),
    ("model.backbone=conv5", "unknown backbone 'conv5': did you mean 'conv4'"),
    ("model.pooling=mean_", "unknown pooling"),
    ("model.freeze=block9", "unknown stage 'block9'"),
    ("model.head=principle", "did you mean 'principal'"),
    ("images.preset=rott", "did you mean 'roth'"),
    ("train.select=map@rr", "map@r"),
    ("train.device=cudo", "there is no device 'cudo'"),
    ("train.precision=half", "unknown train.precision 'half'"),
    ("evaluation.geometry=spear", "spear"),
    ('evaluation.metrics=["recal@1"]', "recal"),
    ("regularisers.embeding_norm={}", "did you mean 'embedding_norm'"),
    ("regularisers.embedding_norm=5", "it must be a table of tables"),
    ("data=3", "data = 3: it must be a table"),
    ("seed=x", "seed = 'x': it must be a whole number"),
    ("seed", "write key=value"),
]


@pytest.mark.parametrize(("text", "message"), WRONG)
@pytest.mark.parametrize("recipe", [None, "file"])
def test_every_mistake_in_a_recipe_is_refused_before_an_image_is_opened(
    photos, monkeypatch, tmp_path, text, message, recipe
):
    opened = []
    monkeypatch.setattr(Files, "open", lambda _, row: opened.append(row))
    if recipe == "file":
        recipe = tmp_path / "recipe.toml"
        recipe.write_text(
            '[model]\nbackbone = "conv4"\n[loss]\nname = "multi_similarity"\n[sampler]\nname = "class_balanced"\n'
            'batch_size = 8\nper_class = 2\n[optimiser]\nname = "adamw"\n[train]\nsteps = 5\n[images]\nsize = 20\n'
        )
    with pytest.raises(UserError) as raised:
        choose(str(photos), recipe, [text])
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)
    assert opened == []


def test_the_command_to_go_on(monkeypatch):
    monkeypatch.setattr("sys.argv", ["/usr/bin/lookalike", "fit", "my photos/", "--out", "run", "--fresh"])
    assert running.resuming() == "lookalike fit 'my photos/' --out run --resume"


def test_an_image_of_another_kind_is_no_obstacle(tmp_path, photos):
    """Grey and coloured, large and small: the default recipe is chosen from most of them."""
    mixed = tmp_path / "mixed"
    shutil.copytree(photos, mixed)
    Image.new("RGB", (300, 200), (255, 0, 0)).save(mixed / "class 00" / "big.jpg")
    _, recipe, _ = choose(str(mixed), None, ["sampler.batch_size=8", "sampler.per_class=2"])
    assert recipe.model.architecture.backbone == "conv4"
    assert recipe.model.architecture.settings["channels"] == 3
