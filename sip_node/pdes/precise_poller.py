"""Waits for sockets of ZeroMQ and open files, up to a time that need not be a whole millisecond."""

from select import select

import zmq  # noqa: TID251 - polls the sockets of an LP

from runtime.core.wallclock import now_ns

_MS_NS = 1_000_000
_SELECT_FILES = 1024
"""`FD_SETSIZE`: select takes no open file with a greater number."""

Source = zmq.Socket[bytes] | int
"""A socket, or an open file."""


class PrecisePoller:
    """Waits for any of the sources that are registered."""

    def __init__(self) -> None:
        self._poller = zmq.Poller()
        self._files: list[int] = []

    def register(self, source: Source) -> None:
        """Wait for `source` as well."""
        self._poller.register(source, zmq.POLLIN)
        self._files.append(source if isinstance(source, int) else source.fileno())

    def ready(self, end_ns: int = 0) -> list[Source]:
        """The sources that can be read, as soon as there is one, at the latest at `end_ns`.

        The default is at once. The time is that of `runtime.core.wallclock.now_ns`.
        """
        left_ns = end_ns and max(0, end_ns - now_ns())
        # Whole milliseconds as ZeroMQ counts them. It takes one call where something comes.
        ready = self._poller.poll(left_ns // _MS_NS)
        while not ready and (left_ns := end_ns - now_ns()) > 0:
            # The file of a socket shows only that its state has changed: after that, and before,
            # the state itself is read (zmq_getsockopt(3), ZMQ_FD).
            self._sleep(left_ns / 1e9)
            ready = self._poller.poll(0)
        return [source for source, _ in ready]

    def _sleep(self, timeout_s: float) -> None:
        if max(self._files) < _SELECT_FILES:
            select(self._files, (), (), timeout_s)
        else:
            # A millisecond more is better than a busy loop.
            self._poller.poll(1)
