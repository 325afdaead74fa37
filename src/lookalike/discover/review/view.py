"""What the page of a review sends, and the answer: the session as the page shows it."""

from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from lookalike.discover.mending import LONGEST
from lookalike.discover.review.strips import State, Strips
from lookalike.discover.session import AGAIN, ReviewSession
from lookalike.files import printable

TYPICAL, ODD = 150, 50  # photos of a strip that are shown, from its beginning and its end
MOST = 10_000  # photos of one answer; strips beyond are not in it


class Photo(BaseModel):
    row: int = Field(description="Its place in the table.")
    name: str = Field(description="The name of its file, or its id.")
    thumbnail: str = Field(description="The address of its picture.")


class StripForm(BaseModel):
    number: int = Field(description="The number of the group; -1 for photos that are in none.")
    label: str
    state: State
    size: int = Field(description="How many photos it has.")
    photos: list[Photo] = Field(description="Those that are shown, the most typical first, the odd ones last.")
    names: list[str] = Field(description="Names that it might have, those of the most similar classes first.")


class QuestionForm(BaseModel):
    left: Photo
    right: Photo
    left_label: str
    right_label: str
    chance: float = Field(description="The chance that they show the same kind.")
    photos: int = Field(description="How many photos join their group if they do.")
    stop: str = Field(description="Why further answers bring little, if they do.")


class ProgressForm(BaseModel):
    photos: int
    settled: int = Field(description="Photos with a name, known, taken out or set aside.")
    groups: int
    named: int = Field(description="Groups with a name that a person gave.")
    found: int = Field(description="Groups without a name, which nobody has set aside.")
    answers: int = Field(description="Questions that were answered.")
    merged: int = Field(description="How many were answered with same.")
    brought: int = Field(description="Photos that joined their group by these answers.")
    expected: int = Field(description="Answers that the machine had expected.")
    steps: int = Field(description="Answers and changes that were not taken back.")
    again: bool = Field(description="Whether there are enough new answers and changes for another fit.")
    fitted: str = Field(description="How much the last new model improved, on photos it did not learn.")


class LevelForm(BaseModel):
    fineness: float = Field(description="From 0 (coarse) to 1 (fine).")
    groups: int


class ReviewForm(BaseModel):
    name: str
    version: int = Field(description="Send this with the next change.")
    strips: list[StripForm]
    classes: list[str] = Field(description="All names so far.")
    question: QuestionForm | None
    progress: ProgressForm
    fineness: float = Field(description="The level of the groups, from 0 (coarse) to 1 (fine).")
    levels: list[LevelForm] = Field(description="How many groups were found at each, the suggested one among them.")
    read_only: bool
    commands: list[str] = Field(
        description="The first fits a model to the groups as they are, the second finds groups by it."
    )


class Word(BaseModel):
    """One change by a person; `group` means all its photos if no `photos` are chosen."""

    model_config = ConfigDict(extra="forbid")

    version: int = Field(ge=0)
    do: Literal["same", "different", "unsure", "merge", "name", "split", "out", "aside", "level", "undo"]
    group: int | None = Field(default=None, ge=0)
    photos: list[int] = Field(default=[], max_length=5000)
    other: int | None = Field(default=None, ge=0, description="The group to merge with.")
    name: str = Field(default="", max_length=LONGEST * 2)
    fineness: float | None = Field(default=None, ge=0, le=1)


def review_form(
    session: ReviewSession, strips: Strips, best: dict[str, Any] | None, count: int, read_only: bool
) -> ReviewForm:
    """The first `count` strips, the next question, and how far it has come."""
    return ReviewForm(
        name=printable(session.place.name.removesuffix(".review")),
        version=session.version,
        strips=strip_forms(session, strips, count),
        classes=sorted({strips.mended.names[number] for number in strips.numbers if number in strips.mended.names}),
        question=None if best is None else _question(session, best),
        progress=_progress(session, strips),
        fineness=session.kept.whole.fineness_of(session.level),
        levels=[LevelForm(fineness=fineness, groups=groups) for fineness, groups in session.kept.stops],
        read_only=read_only,
        commands=list(session.commands),
    )


def _photo(session: ReviewSession, row: int) -> Photo:
    name = printable(Path(session.rows[row].path).name)
    return Photo(row=row, name=name, thumbnail=f"/v1/review/photos/{row}?of={session.kept.digest}")


def strip_forms(session: ReviewSession, strips: Strips, count: int, most: int = MOST) -> list[StripForm]:
    """The first `count` strips, or fewer: as many as show `most` photos."""
    result: list[StripForm] = []
    photos = 0
    for number in strips.numbers[:count]:
        if photos >= most:
            break
        result.append(_strip(session, strips, number))
        photos += len(result[-1].photos)
    return result


def _strip(session: ReviewSession, strips: Strips, number: int) -> StripForm:
    rows = strips.typical(number)
    shown = rows if len(rows) <= TYPICAL + ODD else [*rows[:TYPICAL], *rows[-ODD:]]
    return StripForm(
        number=number,
        label="" if number < 0 else session.label(number),
        state=strips.state(number),
        size=len(rows),
        photos=[_photo(session, row) for row in shown],
        names=strips.names(number),
    )


def _question(session: ReviewSession, best: dict[str, Any]) -> QuestionForm:
    groups = session.mended.groups
    labels = ["" if groups[best[side]] < 0 else session.label(int(groups[best[side]])) for side in ("left", "right")]
    return QuestionForm(
        left=_photo(session, best["left"]),
        right=_photo(session, best["right"]),
        left_label=labels[0],
        right_label=labels[1],
        chance=best["chance"],
        photos=best["settles"],
        stop=session.stop,
    )


def _progress(session: ReviewSession, strips: Strips) -> ProgressForm:
    mended, answers = strips.mended, session.answered
    states = [(number, strips.state(number)) for number in strips.numbers]
    settled = mended.fixed | mended.out | mended.aside
    for number in mended.names:
        settled[strips.rows(number)] = True
    clear = [entry for entry in answers if entry["do"] != "unsure"]
    return ProgressForm(
        photos=len(session.rows),
        settled=int(settled.sum()),
        groups=sum(state != "apart" for _, state in states),
        named=sum(state == "named" for _, state in states),
        found=sum(state == "found" for _, state in states),
        answers=len(answers),
        merged=sum(entry["do"] == "same" for entry in answers),
        brought=sum(int(entry["settles"]) for entry in answers if entry["do"] == "same"),
        expected=sum((entry["chance"] >= 0.5) == (entry["do"] == "same") for entry in clear),
        steps=len(session.lines),
        again=session.since >= AGAIN,
        fitted=session.brought,
    )
