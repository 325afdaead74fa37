"""The forms of answers, for the description of the API and for what is sent."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Value = str | int | float | bool | None
LAST = 1_000  # entries of the log that are shown


class ErrorContent(BaseModel):
    code: str
    message: str = Field(description="One sentence that says what to do.")
    request_id: str


class Error(BaseModel):
    error: ErrorContent


class ItemForm(BaseModel):
    id: str
    label: str | None
    path: str | None = Field(description="The name of its file, without folders.")
    columns: dict[str, Value]
    thumbnail: str = Field(description="Where its picture is, ready to fetch.")
    added: str | None


class PhotoForm(BaseModel):
    item: ItemForm
    similarity: float


class HitForm(BaseModel):
    item: ItemForm = Field(description="Where things are searched for, the best photo of one.")
    similarity: float
    thing: Value = Field(default=None, description="What the thing is called; none where photos are searched for.")
    photos: list[PhotoForm] = Field(default=[], description="The photos that speak for the thing, the best first.")


class Milliseconds(BaseModel):
    decode: float
    network: float
    search: float


class AnswerForm(BaseModel):
    hits: list[HitForm]
    match: float | None = Field(description="The chance that an item of the same label is in the index.")
    label: str | None = Field(description="What the hits say it is; in an index of things, which of them.")
    second: str | None = Field(description="The next label among the hits.")
    chance: float | None = Field(description="The chance that the label is right.")
    verdict: Literal["sure", "maybe", "unknown"] | None = Field(description="None: it has not been measured.")
    words: str = Field(description="The answer for people; empty where nothing is calibrated.")
    meaning: str = Field(description="The verdict in one sentence.")
    milliseconds: Milliseconds
    query: str = Field(description="What feedback calls this query.")
    items: int
    missing: list[str] = Field(
        default=[], description="Shards that did not answer: their items are not among the hits."
    )


class HeatForm(BaseModel):
    values: list[list[float]] = Field(description="Row by row, what each place gives to the similarity.")
    view: list[float] = Field(description="x, y, width, height of the places, in shares of the picture.")


class WhyForm(BaseModel):
    similarity: float
    words: str = Field(description="The picture in one sentence.")
    query: HeatForm
    hit: HeatForm


class MarkedForm(BaseModel):
    feedback: int = Field(description="Its number.")
    item: str
    right: bool
    by: str | None = Field(description="Who said so, where that is known.")
    at: str | None


class MarksForm(BaseModel):
    marks: list[MarkedForm] = Field(description="Those of one query; without one the latest, newest first.")


class LabelForm(BaseModel):
    label: str
    items: int
    example: ItemForm | None = Field(description="One of its items.")


class LabelsForm(BaseModel):
    found: int = Field(description="How many classes have the text in their names.")
    labels: list[LabelForm] = Field(description="Some of them, in natural order.")


class ValueForm(BaseModel):
    value: Value
    items: int


class ColumnForm(BaseModel):
    name: str
    type: Literal["text", "number"]
    values: list[ValueForm] = Field(description="The most frequent ones of a text.")
    least: float | None = None
    most: float | None = None


class CalibrationForm(BaseModel):
    precision: float
    coverage: float
    date: str
    stale: bool
    meaning: str


class LimitsForm(BaseModel):
    body: int
    pixels: int
    k: int


class IndexForm(BaseModel):
    name: str
    items: int
    thing: str | None = Field(description="The column by which photos are things; none: photos answer.")
    classes: int
    labels: list[LabelForm] = Field(description="The first ones; GET /v1/labels has the others.")
    columns: list[ColumnForm]
    newest: list[ItemForm]
    sample: ItemForm | None
    calibration: CalibrationForm | None
    read_only: bool
    why: bool = Field(description="Whether hits can be explained: the index has a model.")
    feedback: int
    limits: LimitsForm


class EntryForm(BaseModel):
    number: int
    time: str
    who: str
    action: str
    subject: str
    detail: str


class LogForm(BaseModel):
    entries: list[EntryForm] = Field(description=f"The last {LAST} entries, in order.")


class DayForm(BaseModel):
    date: str
    verdicts: dict[str, int] = Field(description="Answers called sure, maybe, unknown, uncalibrated.")
    similarities: list[int] = Field(description="Queries in each tenth of the calibration's similarities, low to high.")
    cloud: float | None = Field(description="How usual the queries were among the items; 0 is the centre.")
    watched: int = Field(description="Queries that were compared with those of the calibration.")
    sure_right: int = Field(description="Answers called sure that were marked right.")
    sure_wrong: int
    canaries: int = Field(description="Pictures of items that were searched for.")
    canaries_lost: int = Field(description="Those that no longer had their own vector.")
    alarms: dict[str, int]


class WatchForm(BaseModel):
    reference: bool = Field(description="Whether the calibration says what ordinary queries look like.")
    evidence: dict[str, float] = Field(description="How close each alarm is; at 1 it is raised.")
    promise: str = Field(description="How often an alarm is false.")
    days: list[DayForm]


class HealthForm(BaseModel):
    ready: bool


class RemovedForm(BaseModel):
    removed: str


class MarkForm(BaseModel):
    feedback: int = Field(description="Its number: DELETE /v1/feedback/NUMBER takes it back.")
    query: str
    item: str
    right: bool


class UnmarkedForm(BaseModel):
    undone: int


class SearchRequest(BaseModel):
    """A search without pictures."""

    model_config = ConfigDict(extra="forbid")
    item: list[str] | str = Field(default_factory=list, description="Ids of items that are meant.")
    not_item: list[str] | str = Field(default_factory=list, description="Ids of items that are not meant.")
    where: list[str] | str = Field(default_factory=list, description="Conditions: brand=x, price<20.")
    group: str | None = Field(None, description="A column: things by its values; id: photos.")
    k: int = Field(12, ge=1, le=200, description="How many hits.")


class WhyRequest(BaseModel):
    """Why an item was found, searching by another item."""

    model_config = ConfigDict(extra="forbid")
    query_item: str = Field(description="The item that was searched for.")
    item: str = Field(description="The id of the hit.")


class FeedbackRequest(BaseModel):
    model_config = ConfigDict(extra="forbid")
    query: str | None = Field(None, max_length=64, description="The digest that the search answered with.")
    query_item: str | None = Field(None, description="The item that was searched for.")
    item: str = Field(description="The id of the hit.")
    right: bool = Field(description="Whether the hit shows what was searched for.")
    by: str | None = Field(None, max_length=100, description="Who says so.")


def binary() -> dict[str, Any]:
    return {"type": "string", "format": "binary"}


def many(kind: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": kind}


TEXT: dict[str, Any] = {"type": "string"}
SEARCH_FORM = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "image": many(binary()) | {"description": "JPEG, PNG, WebP or GIF; several are of one thing."},
        "not_image": many(binary()) | {"description": "Pictures that are not meant."},
        "item": many(TEXT) | {"description": "Ids of items that are meant."},
        "not_item": many(TEXT) | {"description": "Ids of items that are not meant."},
        "box": TEXT | {"pattern": r"^\d{1,6},\d{1,6},\d{1,6},\d{1,6}$", "description": "x,y,width,height in pixels."},
        "where": many(TEXT) | {"description": "Conditions: brand=x, price<20."},
        "group": TEXT | {"description": "A column: things by its values; id: photos."},
        "k": {"type": "integer", "minimum": 1, "maximum": 200, "default": 12, "description": "How many hits."},
    },
}
ITEM_FORM = {
    "type": "object",
    "additionalProperties": False,
    "required": ["image"],
    "properties": {
        "image": binary() | {"description": "JPEG, PNG, WebP or GIF."},
        "id": TEXT | {"minLength": 1, "maxLength": 500, "description": "Its id; without one the server makes one."},
        "label": TEXT | {"description": "Its class."},
        "columns": TEXT | {"description": "A JSON object of texts and numbers."},
    },
}
WHY_FORM = {
    "type": "object",
    "additionalProperties": False,
    "required": ["image", "item"],
    "properties": {
        "image": binary() | {"description": "The picture that was searched for."},
        "box": SEARCH_FORM["properties"]["box"],  # type: ignore[index]
        "item": TEXT | {"description": "The id of the hit."},
    },
}
FEEDBACK_FORM = {
    "type": "object",
    "additionalProperties": False,
    "required": ["item", "right"],
    "properties": {
        "image": binary() | {"description": "The picture that was searched for; it is kept with the mark."},
        "box": SEARCH_FORM["properties"]["box"],  # type: ignore[index]
        "query": TEXT | {"maxLength": 64, "description": "The digest that the search answered with."},
        "query_item": TEXT | {"description": "The item that was searched for."},
        "item": TEXT | {"description": "The id of the hit."},
        "right": {"type": "boolean", "description": "Whether the hit shows what was searched for."},
        "by": TEXT | {"maxLength": 100, "description": "Who says so."},
    },
}
