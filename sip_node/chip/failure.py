"""The error of a rank program or a kernel, as it leaves the event loop."""

from types import TracebackType

from greenlet import GreenletExit


class ProgramRaised(Exception):  # noqa: N818 - it wraps the error
    """A rank program or a kernel of its SIP raised. Fields: rank, the exception."""

    def __init__(self, rank: int, error: BaseException) -> None:
        super().__init__(rank, error)
        self.rank, self.error = rank, error

    def __str__(self) -> str:
        return f"rank {self.rank}: {type(self.error).__name__}: {self.error}"


class ProgramDropped(GreenletExit):
    """A program that waits is deleted at the end of a run.

    Greenlets raise their own `GreenletExit` there, which a program may raise as well.
    """


def user_traceback(error: BaseException) -> str:
    """The traceback of `error` as Python prints it, from the user's outermost frame on."""
    shown = error.__traceback__
    # The frames of the event loop come first, and help no user.
    while shown is not None and shown.tb_next is not None and _is_ours(shown):
        shown = shown.tb_next
    # Loaded where something failed, since no other run needs it.
    from traceback import format_exception

    return "".join(format_exception(type(error), error, shown))


def _is_ours(frame: TracebackType) -> bool:
    module: str = frame.tb_frame.f_globals.get("__name__", "")
    return module.partition(".")[0] in ("sip_node", "runpy") or module == "<frozen runpy>"
