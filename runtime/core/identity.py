"""Parts of keys that stand for one object, where an equal object is another one."""


class Identity:
    """An object that is equal to itself only, and kept while a key names it."""

    __slots__ = ("_each",)

    def __init__(self, each: object) -> None:
        self._each = each

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Identity) and self._each is other._each

    def __hash__(self) -> int:
        return id(self._each)
