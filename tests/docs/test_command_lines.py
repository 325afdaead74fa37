"""Every command in the guides is one that the program takes: its verb, arguments, options and values."""

import re
import shlex
from pathlib import Path

import pytest
import typer
from typer.main import get_command

from lookalike.cli import app

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "papers/README.md")]
PAGES += sorted((ROOT / "docs").glob("*.md"))
BLOCK = re.compile(r"^( *)```\w*\n(.*?)^\1```", re.S | re.M)
MENTIONED = re.compile(r"(?<!`)`(lookalike [^`]+)`(?!`)")
PROGRAM = re.compile(r"^(?:\w+=\S+ )*(?=lookalike )")  # behind variables of the environment
UsageError = typer.BadParameter.__base__
GROUP = get_command(app)


def in_blocks(text: str) -> list[str]:
    """Command lines to be pasted."""
    blocks = [found[2].replace("\\\n", " ") for found in BLOCK.finditer(text)]
    lines = [line.strip() for block in blocks for line in block.splitlines()]
    return [PROGRAM.sub("", line) for line in lines if PROGRAM.match(line)]


def in_sentences(text: str) -> list[str]:
    """Commands that are mentioned, perhaps without what they are given."""
    return [" ".join(line.split()) for line in MENTIONED.findall(BLOCK.sub("", text))]


def verb_of(line: str):
    """The verb, its name, and the words after it."""
    command, name, words = GROUP, "lookalike", shlex.split(line, comments=True)[1:]
    while hasattr(command, "commands") and words and not words[0].startswith("-"):
        name = words.pop(0)
        command = command.commands.get(name)
    return command, name, words


def refused(line: str) -> str:
    """What the program says against a line; nothing if it takes it."""
    command, name, words = verb_of(line)
    if command is None:
        return f"there is no verb {name}"
    try:
        command.make_context(name, words)
    except UsageError as error:
        return error.format_message()
    except typer.Exit:  # --help, --version
        return ""
    return ""


def unknown(line: str) -> str:
    """A verb or an option of a mention that the program does not have."""
    command, name, words = verb_of(line)
    if command is None:
        return f"there is no verb {name}"
    options = {"--help"}.union(*(each.opts for each in command.params))
    return ", ".join({word.partition("=")[0] for word in words if word.startswith("--")} - options)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_program_takes_the_commands_of_the_page(page):
    text = page.read_text(encoding="utf-8")
    told = [(line, refused(line)) for line in in_blocks(text)]
    if page.name != "CHANGELOG.md":  # which also names what was removed
        told += [(line, unknown(line)) for line in in_sentences(text)]
    assert not [f"{line}: {problem}" for line, problem in told if problem]


def test_commands_are_found_and_wrong_ones_noticed():
    text = "```\nLOOKALIKE_TOKEN=… lookalike serve x.index --workers 2   # why\n```\nand `lookalike serve\n--workers`."
    assert in_blocks(text) == ["lookalike serve x.index --workers 2   # why"]
    assert in_sentences(text) == ["lookalike serve --workers"]
    assert not refused(in_blocks(text)[0])
    assert not unknown(in_sentences(text)[0])
    assert refused("lookalike searhc a b") == unknown("lookalike searhc") == "there is no verb searhc"
    assert "--wrokers" in refused("lookalike serve x.index --wrokers 2")
    assert "--workers" in refused("lookalike serve x.index --workers two")
    assert "MODEL" in refused("lookalike index")
    assert unknown("lookalike fit --wiht shop.index") == "--wiht"
    assert sum(len(in_blocks(page.read_text(encoding="utf-8"))) for page in PAGES) > 80
