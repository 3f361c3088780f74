"""The end of a recording: a kernel whose commands no list holds."""


class NotListed(BaseException):
    """A kernel whose commands no list holds; the argument is the reason.

    No kernel catches it, since kernels catch `Exception` at most.
    """


class ReadsNumber(NotListed):
    """A kernel whose commands depend on numbers: a list is one for these. The argument is the set
    of their places among those of the arguments.
    """

    @property
    def places(self) -> frozenset[int]:
        """The places of the numbers among those of the arguments."""
        return self.args[0]


class ReadsId(NotListed):
    """A kernel whose commands depend on ids of its program: a list is one for these ids. The
    argument has their axes.
    """

    @property
    def axes(self) -> tuple[int, ...]:
        """The axes of the ids."""
        return self.args[0]
