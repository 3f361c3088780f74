"""The error of a rank program or a kernel, as it leaves the event loop."""

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
