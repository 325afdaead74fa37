"""The one way an image file can fail. It is never fatal: who reads many files lists it and continues."""


class UnreadableError(Exception):
    """An image that cannot be used; `kind` is one of missing, empty, not an image, truncated, damaged, bomb."""

    def __init__(self, kind: str, detail: str) -> None:
        super().__init__(f"{kind}: {detail}")
        self.kind = kind
        self.detail = detail

    def __reduce__(self) -> tuple[type["UnreadableError"], tuple[str, str]]:
        return UnreadableError, (self.kind, self.detail)  # the default loses an argument when it is pickled
