"""Check keys of dicts and items of sets, which a file may choose to be slow."""
from __future__ import annotations

from typing import Any

from ._allowed import Refused

MOST_COLLISIONS = 20       # keys of one hash
LARGEST_KEY = 64           # items within items of a key that is a tuple; a text counts for its length
LONG = 256                 # characters of a text that must not be compared often


class Keys:
    """Bounds the cost of comparing keys, whatever a file chose: hashing a tuple hashes all its items, keys of one
    hash are compared with each other, and equal texts letter by letter."""

    def __init__(self) -> None:
        self._seen: dict[int, set[Any]] = {}
        # the address of a key → the key, kept alive, and the equal key used for it
        self._known: dict[int, Any] = {}
        self._texts: dict[Any, Any] = {}

    def checked(self, key: Any) -> Any:
        """Return the key, or an earlier equal text. Refused if the key is large or many have its hash."""
        kind = type(key)
        if ((kind is str or kind is bytes) and len(key) <= LONG or kind is bool or key is None or kind is int
                and -(1 << 62) < key < 1 << 62):
            return key
        if id(key) in self._known:
            return self._known[id(key)][1]
        if kind is str or kind is bytes:
            known = self._texts.setdefault(key, key)
            self._known[id(key)] = key, known
            return known
        waiting, items = [key], 0
        while waiting:
            item = waiting.pop()
            items += 1 + _length(item)
            if isinstance(item, (tuple, frozenset)):
                if items + len(waiting) + len(item) > LARGEST_KEY:
                    raise Refused("a key has too many items")
                waiting.extend(item)
            if items > LARGEST_KEY:
                raise Refused("a key has too many items, or too long ones")
        seen = self._seen.setdefault(hash(key), set())
        seen.add(key)
        if len(seen) > MOST_COLLISIONS:
            raise Refused("too many keys have the same hash")
        self._known[id(key)] = key, key
        return key


def _length(item: Any) -> int:
    """Return the number of items that a value other than a tuple counts for."""
    if isinstance(item, (str, bytes)):
        return len(item) // LONG
    return item.bit_length() // LONG if isinstance(item, int) else 0
