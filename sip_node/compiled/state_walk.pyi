"""The state of objects, as Python sees it."""

class NotClosed(Exception): ...  # noqa: N818 - no error, but an answer

class StateVector:
    now_ps: int
    ids: int
    def key(self) -> int: ...
    def recurs(self, earlier: StateVector) -> bool: ...
