"""The one way an image file can fail. Never fatal: whoever reads many files lists it and goes on with the next."""


class UnreadableError(Exception):
    """An image that cannot be used; `kind` is one of missing, empty, not an image, truncated, damaged, bomb."""

    def __init__(self, kind: str, detail: str) -> None:
        super().__init__(f"{kind}: {detail}")
        self.kind = kind
        self.detail = detail

    def __reduce__(self) -> tuple[type["UnreadableError"], tuple[str, str]]:
        return UnreadableError, (self.kind, self.detail)  # the default loses an argument on the way back from a worker
