"""The end of a recording: a kernel whose commands no list holds."""


class NotListed(BaseException):
    """A kernel whose commands no list holds; the argument is the reason.

    No kernel catches it, since kernels catch `Exception` at most.
    """


class ReadsId(NotListed):
    """A kernel whose commands depend on the ids of its program: a list is one for these ids."""
