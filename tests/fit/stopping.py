"""Runs that are stopped at a moment, as Ctrl-C stops them."""


class Stop:
    """Stops a run after `count` events of a kind: those of the stages whose names begin with `name`.

    seen: those events, so far.
    """

    def __init__(self, count, kind="step", name=""):
        self.count, self.kind, self.name, self.seen = count, kind, name, []

    def tell(self, event):
        if event["event"] == self.kind and event.get("name", "").startswith(self.name):
            self.seen.append(event)

    def __call__(self):
        return len(self.seen) >= self.count
