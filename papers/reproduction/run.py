"""Runs the studies one after the other, each by several processes; finished cells are kept, so that it can be stopped
and started again at any time. After each study its study.json goes to results/ and the page is drawn anew; what is
there is not run again, on whatever machine it was run."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from lookalike.files import write_text
from lookalike.sweeps import Study, gather, read
from papers.reproduction import page
from papers.reproduction.figures import RESULTS, Kept
from papers.reproduction.planned import ROOT, SEARCH, SEARCH_FILE, STUDIES, PlannedRun

TRIALS = 15
SECONDS = {
    "cub": 18.0,
    "cars": 18.0,
    "finetuned": 900.0,
    "omniglot": 600.0,
    "trial": 120.0,
}  # of one core, before any is measured


def estimate(data: dict[str, str], out: Path, workers: int) -> Iterator[str]:
    """How far every study is, and how long the rest takes, by what its finished cells took."""
    total = 0.0
    for study in STUDIES:
        if study.data not in data:
            yield f"{study.name}: left out, it needs --{study.data}"
            continue
        if kept_whole(study):
            yield f"{study.name}: all cells are kept in {RESULTS.relative_to(ROOT)}"
            continue
        content = gather(_read(study, data), out / study.name)
        took = sorted(seconds for row in content["rows"] for seconds in row["seconds"])
        each = took[len(took) // 4] if took else SECONDS[study.cells]  # slow ones shared their core, or were stopped
        done = max(content["done"], Kept.read(study.name).content["done"] if _kept(study) else 0)
        left = (content["cells"] - done) * each
        total += left
        yield f"{study.name}: {done} of {content['cells']} cells, {left / 3600 / workers:.1f} hours left"
    if "cub200" in data and not _searched():
        left = TRIALS * SECONDS["trial"]
        total += left
        yield f"{SEARCH}: {TRIALS} trials, {left / 3600 / workers:.1f} hours left"
    yield f"about {total / 3600 / workers:.1f} hours with {workers} workers, if each has a core of its own"


def run(data: dict[str, str], out: Path, workers: int) -> int:
    """Run what is left of every study; the exit code of the first one that was stopped, else 0."""
    for study in STUDIES:
        if study.data in data and not kept_whole(study):
            words = ["study", str(study.file), _source(study, data), "--workers", str(workers)]
            earlier = ["--earlier", str(RESULTS / f"{study.name}.json")] if _kept(study) else []
            code = _lookalike([*words, "--out", str(out / study.name), *earlier])
            keep(study, data, out)
            if code:
                return code
    if "cub200" in data and not _searched():
        words = ["tune", str(SEARCH_FILE), f"cub200={data['cub200']}", "--trials", str(TRIALS)]
        code = _lookalike([*words, "--out", str(out / SEARCH)])
        keep_search(out)
        return code
    return 0


def _lookalike(words: list[str]) -> int:
    """One thread per process: with more, sums have another order and figures differ in their last digits."""
    print("lookalike", *words, file=sys.stderr)
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "lookalike", *words]
    process = subprocess.Popen(command, env=environment, process_group=0)
    for number in (signal.SIGINT, signal.SIGTERM):  # all workers finish their step and save
        signal.signal(number, lambda number, _: os.killpg(process.pid, number))
    return process.wait()


def kept_whole(study: PlannedRun, results: Path = RESULTS) -> bool:
    """Whether every cell of a study, as it is planned now, has its result in the repository."""
    return _kept(study, results) and Kept.read(study.name, results).complete


def _kept(study: PlannedRun, results: Path = RESULTS) -> bool:
    """Whether cells of a study, as it is planned now, have their results in the repository."""
    return bool(Kept.read(study.name, results).content.get("digest") == read(study.file).digest)


def _searched(results: Path = RESULTS) -> bool:
    """Whether the search has all its trials in the repository."""
    return len(Kept.read(SEARCH, results).content.get("trials", ())) >= TRIALS


def _read(study: PlannedRun, data: dict[str, str]) -> Study:
    return read(study.file, _source(study, data))


def _source(study: PlannedRun, data: dict[str, str]) -> str:
    """The images as `lookalike study` takes them: a folder by its layout, or a table of them."""
    place = data[study.data]
    return place if Path(place).is_file() else f"{study.data}={place}"


def keep(study: PlannedRun, data: dict[str, str], out: Path) -> None:
    """Gather what a study has so far into results/ and draw the page."""
    planned = _read(study, data)
    content = gather(replace(planned, compare=_compared(study.name, planned)), out / study.name)
    if content["done"] and (not _kept(study) or content["done"] >= Kept.read(study.name).content["done"]):
        RESULTS.mkdir(exist_ok=True)
        content |= {"data": study.data}  # not where it lay
        write_text(RESULTS / f"{study.name}.json", json.dumps(_short(content), ensure_ascii=False) + "\n")
        page.write()


def _compared(name: str, study: Study) -> tuple[tuple[str, str], ...]:
    """The pairs of a study and those of the claims, so that every claim has its interval over queries."""
    claimed = [
        (claim["row"], claim["against"])
        for claim in page.claims()
        if claim.get("study") == name and claim["kind"] == "pair"
    ]
    return tuple(dict.fromkeys([*study.compare, *claimed]))


def _short(value: Any) -> Any:
    """The same with six digits: more say nothing and fill the repository.

    >>> _short({"map@r": [0.12345678, 3]})
    {'map@r': [0.123457, 3]}
    """
    if isinstance(value, dict):
        return {key: _short(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_short(part) for part in value]
    return float(f"{value:.6g}") if isinstance(value, float) else value


def keep_search(out: Path) -> None:
    if all((out / SEARCH / name).is_file() for name in ("trials.json", "best.toml")):
        RESULTS.mkdir(exist_ok=True)
        trials = json.loads((out / SEARCH / "trials.json").read_text(encoding="utf-8"))
        write_text(RESULTS / f"{SEARCH}.json", json.dumps({"rows": [], "trials": trials}, indent=1) + "\n")
        best = (out / SEARCH / "best.toml").read_text(encoding="utf-8")
        best = re.sub(r"^source = .*\n", "", best, flags=re.MULTILINE)  # where the images lay
        write_text(RESULTS / f"{SEARCH}_best.toml", best)
        page.write()
