"""How many items meet a condition, remembered until the index changes: verdicts ask for the same classes every time."""

from collections.abc import Callable

from lookalike.search.filters import Filter
from lookalike.search.stores import Store

KEPT = 10_000  # conditions


class ItemCounts:
    """Counts of one store. What was counted is forgotten with the next change of the store, whoever makes it."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._known: tuple[object, dict[str, int]] = (None, {})

    def now(self) -> Callable[[Filter], int]:
        """A count of the store as it is now; a change in between is seen by the next call."""
        version = self.store.identity.generation, self.store.version()
        if self._known[0] != version or len(self._known[1]) >= KEPT:
            self._known = version, {}
        known = self._known[1]

        def count(where: Filter) -> int:
            key = repr(where)  # 1, 1.0 and True are equal, and not the same condition
            if key not in known:
                known[key] = self.store.count(where)
            return known[key]

        return count
