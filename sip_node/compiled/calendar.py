"""The base of actors for the interpreter: see calendar.pyx."""


class Actor:
    """An object that events call; see `sip_node.kernel.crossing_events`."""

    __slots__ = ()
