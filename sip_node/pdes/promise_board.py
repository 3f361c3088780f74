"""Promises in shared memory, for the LPs of one host: a slot per channel, written by its sender.

Every LP has a file in the private directory of the run, which it alone writes and all its peers
map. Reading a promise costs no system call, and a promise that was not read is replaced by the
next one. The file of an LP, in words of 8 bytes:

    0                     whether the LP sleeps, and a peer with news must ring
    per peer, from a cache line of its own:
      +0  version         even: the promise is whole; odd: it is being written
      +1  checksum        CRC-32 of the words from +3 on
      +2  announced       contents sent to this peer over the transport
      +3  preceding       of them, those sent before the promise
      +4  null_hops
      +5  trips between hosts behind the present of the sender
      +6  number of promises, and the promises by remaining hops

*No torn reads.* The version is a sequence lock: a reader takes a promise only if the version was
even before and is the same after. A processor that reorders stores could still show a new version
with old words, and then the checksum does not match. Either way the reader tries again later.

*No lost wake-up.* An LP that is going to sleep first declares it, then checks for news once more; a
sender first writes, then checks whether the peer sleeps, and rings the bell (a FIFO). With a memory
barrier between the two steps on both sides, one of them sees the other. A sleep is bounded, too.

The coordinator removes the directory in every way to end, or the last LP does (`lifeline.py`).
"""

import contextlib
import mmap
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from struct import Struct
from threading import Lock
from typing import NamedTuple
from zlib import crc32

from runtime.core.errors import UsageError

_WORD = 8
_LINE = 8
"""Words of a cache line: two LPs never write the same line."""
_VERSION, _CHECKSUM, _ANNOUNCED, _BODY = range(4)
_HEAD_WORDS = 4
_HEAD = Struct(f"={_HEAD_WORDS}q")
"""The beginning of the body: preceding, null hops, trips, number of promises."""
_BELL_BYTES = 4096


class BoardPromise(NamedTuple):
    """Promises by remaining hops; they hold once `preceding` contents have been received."""

    promises_ps: tuple[int, ...]
    null_hops: int
    preceding: int
    trips: int = 0


class PromiseBoard:
    """The end of LP `lp` of `lps`; its files are in `directory`.

    The files of the peers are opened by `open`, when all LPs have constructed their end. Raises
    `UsageError` if the directory has no room for its own.
    """

    def __init__(self, directory: Path, lp: int, lps: int) -> None:
        self._directory, self._lp = directory, lp
        # Remaining hops are fewer than LPs, so there is room for a promise for each.
        words = _BODY + _HEAD_WORDS + lps
        self._stride = -(-words // _LINE) * _LINE
        self._words = _LINE + self._stride * lps
        counts = range(lps + 1)
        self._layouts: list[Struct] = [Struct(f"={_HEAD_WORDS + count}q") for count in counts]
        try:
            self._mine = _mapped(self._file(lp), self._words, os.O_RDWR | os.O_CREAT | os.O_EXCL)
            os.mkfifo(self._bell_file(lp), 0o600)
        except OSError as error:
            self._file(lp).unlink(missing_ok=True)
            raise UsageError(
                f"TMPDIR: no space in {directory} for {self._words * _WORD:,} bytes that LP {lp} "
                f"shares with its peers: {error.strerror}; free some, or set TMPDIR to another "
                "directory"
            ) from error
        self._own = self._mine.cast("q")
        # Opened for both directions: opening never blocks, and the FIFO never ends.
        self.bell = os.open(self._bell_file(lp), os.O_RDWR | os.O_NONBLOCK)
        self._theirs: dict[int, tuple[memoryview, memoryview]] = {}
        self._bells: dict[int, int] = {}
        self._seen: dict[int, int] = {}
        self._barrier_lock = Lock()

    def open(self, peers: Iterable[int]) -> None:
        """Map the files of the peers; `FileNotFoundError` for a peer that has closed its end."""
        for peer in peers:
            view = _mapped(self._file(peer), self._words, os.O_RDWR)
            self._theirs[peer] = view, view.cast("q")
            self._bells[peer] = os.open(self._bell_file(peer), os.O_RDWR | os.O_NONBLOCK)
            self._seen[peer] = 0

    def write(self, peer: int, promise: BoardPromise) -> None:
        """Replace the promise for `peer`, and wake it if it sleeps."""
        own, slot, count = self._own, self._slot(peer), len(promise.promises_ps)
        version = own[slot + _VERSION]
        # Odd from here on: a reader that comes now tries again, and no writer waits for a reader.
        own[slot + _VERSION] = version + 1
        body = self._layouts[count].pack(
            promise.preceding, promise.null_hops, promise.trips, count, *promise.promises_ps
        )
        begin = (slot + _BODY) * _WORD
        self._mine[begin : begin + len(body)] = body
        own[slot + _CHECKSUM] = crc32(body)
        own[slot + _VERSION] = version + 2
        self._barrier()
        # The peer sets its word first and looks for news then; the barrier makes one of the two see
        # the other (as in Dekker's algorithm).
        if self._theirs[peer][1][0]:
            _ring(self._bells[peer])

    def read(self, peer: int) -> BoardPromise | None:
        """The promise of `peer`, if it is whole and was not read before."""
        view, words = self._theirs[peer]
        slot = self._slot(self._lp)
        version = words[slot + _VERSION]
        if version == self._seen[peer] or version & 1:
            return None
        begin = (slot + _BODY) * _WORD
        head: tuple[int, int, int, int] = _HEAD.unpack_from(view, begin)
        preceding, null_hops, trips, count = head
        # What a reader finds while the peer writes need not be a promise.
        if not 0 < count < len(self._layouts):
            return None
        layout = self._layouts[count]
        body = bytes(view[begin : begin + layout.size])
        if words[slot + _VERSION] != version or crc32(body) != words[slot + _CHECKSUM]:
            return None
        self._seen[peer] = version
        return BoardPromise(layout.unpack(body)[_HEAD_WORDS:], null_hops, preceding, trips)

    def has_news(self) -> bool:
        """Whether a peer has written a promise since the last `read`."""
        slot, seen = self._slot(self._lp), self._seen
        return any(words[slot] != seen[peer] for peer, (_, words) in self._theirs.items())

    def announce(self, peer: int, contents: int) -> None:
        """`contents` have been sent to `peer` over the transport, this one included."""
        self._own[self._slot(peer) + _ANNOUNCED] = contents

    def announced(self, peer: int) -> int:
        """The number of contents that `peer` has sent here over the transport."""
        return self._theirs[peer][1][self._slot(self._lp) + _ANNOUNCED]

    def sleep(self, wait: Callable[[], None], has_news: Callable[[], bool]) -> None:
        """Call `wait`, which returns when the bell rings too, unless there is news."""
        self._own[0] = 1
        self._barrier()
        # News that came before the word was set have rung no bell.
        if not has_news():
            wait()
        self._own[0] = 0

    def clear_bell(self) -> None:
        """Read the rings so far. One that comes later ends the next sleep at once."""
        with contextlib.suppress(BlockingIOError):
            os.read(self.bell, _BELL_BYTES)

    def close(self) -> None:
        """Release the memory and remove the files of this LP; closing again does nothing."""
        for peer, bell in self._bells.items():
            os.close(bell)
            self._theirs[peer][1].release()
        if self.bell >= 0:
            os.close(self.bell)
        self._bells, self._theirs, self.bell = {}, {}, -1
        self._file(self._lp).unlink(missing_ok=True)
        self._bell_file(self._lp).unlink(missing_ok=True)

    def _slot(self, peer: int) -> int:
        return _LINE + self._stride * peer

    def _file(self, lp: int) -> Path:
        return self._directory / f"promises{lp}"

    def _bell_file(self, lp: int) -> Path:
        return self._directory / f"bell{lp}"

    def _barrier(self) -> None:
        # Python has no fence; taking a lock is an atomic exchange, which orders memory as one does.
        with self._barrier_lock:
            pass


def _mapped(path: Path, words: int, flags: int) -> memoryview:
    file = os.open(path, flags, 0o600)
    try:
        if flags & os.O_CREAT:
            # A file with holes is extended at the first store, and a full disk then is a SIGBUS.
            os.posix_fallocate(file, 0, words * _WORD)
        elif os.fstat(file).st_size < words * _WORD:
            raise UsageError(
                f"TMPDIR: {path} has {os.fstat(file).st_size:,} bytes and not {words * _WORD:,}: "
                "another process has changed it"
            )
        return memoryview(mmap.mmap(file, words * _WORD))
    finally:
        os.close(file)


def _ring(bell: int) -> None:
    # A bell that is full of rings wakes the peer anyway.
    with contextlib.suppress(BlockingIOError):
        os.write(bell, b"\0")
