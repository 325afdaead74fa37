"""What a server is told when it starts, and the limits it keeps to."""

from dataclasses import dataclass

from lookalike.search.stores.places import Place

LOCAL = ("localhost", "127.0.0.1", "::1")  # hosts that only this machine reaches


@dataclass(frozen=True)
class Settings:
    """Where to listen, who may ask, and how much at a time; sizes in bytes, times in seconds."""

    place: Place  # the index
    host: str = "127.0.0.1"
    port: int = 8000
    token: str | None = None
    names: tuple[str, ...] = ()  # host names that requests may be addressed to, beside the usual ones
    read_only: bool = False
    workers: int = 1
    body: int = 20_000_000  # of one request
    pixels: int = 50_000_000  # of one picture
    hits: int = 200  # of one answer
    examples: int = 16  # of one search
    waiting: int = 64  # searches and writes at a time, in one worker
    connections: int = 1024  # at a time, in one worker; beyond that requests are refused, beyond twice that cut off
    uploads: int = 256  # bodies at a time, in one worker
    flight: int = 200_000_000  # bytes of all bodies that are being received or worked on, in one worker
    silence: float = 10.0  # without a byte of a body that was announced
    upload: float = 60.0  # for a whole body
    patience: float = 30.0  # for one answer
    searching: float = 20.0  # for one pass over the index, for all who share it, and to explain one hit
    taking: float = 30.0  # for the caller to take what was answered
    grace: float = 30.0  # for what has begun when the server is told to stop; a sixth more, and it ends in any case
    look: float = 1.0  # between looks for new keys and for a new generation
    log: bool = True  # a line for every request
