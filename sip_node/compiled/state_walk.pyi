"""A walk over the state of objects, as Python sees it."""

class NotClosed(Exception): ...  # noqa: N818 - no error, but an answer
class StateWalk: ...
