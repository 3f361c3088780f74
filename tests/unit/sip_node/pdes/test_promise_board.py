"""The memory in which LPs of one host promise."""

import errno
import os
import resource
import select
from collections.abc import Iterator
from pathlib import Path

import pytest

from runtime.core.errors import UsageError
from runtime.core.simtime import NEVER_PS
from sip_node.pdes.promise_board import BoardPromise, PromiseBoard

Pair = tuple[PromiseBoard, PromiseBoard]
PROMISE = BoardPromise((5, 70, NEVER_PS), 2, 9)


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    boards = PromiseBoard(tmp_path, 0, 3), PromiseBoard(tmp_path, 1, 3)
    boards[0].open([1])
    boards[1].open([0])
    yield boards
    for board in boards:
        board.close()
        board.close()
    assert list(tmp_path.iterdir()) == []


def corrupt(board: PromiseBoard, word: int, by: int) -> None:
    """Change a word of the slot of LP 1 in the file of LP 0."""
    board._own[board._slot(1) + word] += by


def test_a_promise_is_read_once_and_the_newest_replaces_those_before(pair: Pair) -> None:
    assert pair[1].read(0) is None
    pair[0].write(1, BoardPromise((1,), 0, 0))
    pair[0].write(1, PROMISE)
    assert pair[1].has_news()
    assert pair[1].read(0) == PROMISE
    assert not pair[1].has_news()
    assert pair[1].read(0) is None


def test_both_directions_have_slots_of_their_own(pair: Pair) -> None:
    pair[0].write(1, PROMISE)
    assert pair[0].read(1) is None
    pair[1].write(0, BoardPromise((3,), 1, 4))
    assert pair[0].read(1) == BoardPromise((3,), 1, 4)
    assert pair[1].read(0) == PROMISE


def test_a_promise_that_is_being_written_is_not_read(pair: Pair) -> None:
    pair[0].write(1, PROMISE)
    corrupt(pair[0], 0, 1)
    assert pair[1].read(0) is None
    corrupt(pair[0], 0, 1)
    assert pair[1].read(0) == PROMISE


# All words of the slot but the version and the announcements, which are a word of their own.
@pytest.mark.parametrize("word", [1, *range(3, 9)])
def test_words_of_two_promises_are_not_read_as_one(pair: Pair, word: int) -> None:
    pair[0].write(1, PROMISE)
    corrupt(pair[0], word, 1)
    assert pair[1].read(0) is None
    # The reader tries again.
    corrupt(pair[0], word, -1)
    assert pair[1].read(0) == PROMISE


def test_announcements_are_counts(pair: Pair) -> None:
    assert pair[1].announced(0) == 0
    pair[0].announce(1, 7)
    assert pair[1].announced(0) == 7
    assert not pair[1].has_news()


def test_a_promise_rings_a_peer_that_sleeps(pair: Pair) -> None:
    def rung(seconds: float) -> bool:
        return bool(select.select([pair[1].bell], [], [], seconds)[0])

    pair[0].write(1, PROMISE)
    assert not rung(0)
    pair[1].read(0)
    woken: list[bool] = []

    def wait() -> None:
        pair[0].write(1, BoardPromise((6,), 0, 0))
        woken.append(rung(10))

    pair[1].sleep(wait, pair[1].has_news)
    assert woken == [True]
    # Awake again, so that nothing rings it.
    pair[1].clear_bell()
    pair[0].write(1, PROMISE)
    assert not rung(0)


def test_an_lp_with_news_does_not_sleep(pair: Pair) -> None:
    pair[0].write(1, PROMISE)
    slept: list[None] = []
    pair[1].sleep(lambda: slept.append(None), pair[1].has_news)
    assert slept == []


def test_the_bell_of_a_peer_that_never_listens_does_not_block(pair: Pair) -> None:
    def wait() -> None:
        for number in range(70_000):
            os.write(pair[1].bell, b"\0") if number < 60_000 else None
        pair[0].write(1, PROMISE)

    pair[1].sleep(wait, lambda: False)
    assert pair[1].read(0) == PROMISE


def test_a_peer_that_has_closed_its_end_is_not_opened(tmp_path: Path) -> None:
    board = PromiseBoard(tmp_path, 0, 2)
    with pytest.raises(FileNotFoundError, match="promises1"):
        board.open([1])
    board.close()


def test_the_file_of_a_board_has_its_space_from_the_start(tmp_path: Path) -> None:
    board = PromiseBoard(tmp_path, 0, 3)
    status = (tmp_path / "promises0").stat()
    assert status.st_blocks * 512 >= status.st_size > 0
    board.close()


def test_a_directory_without_space_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_file: int, _offset: int, _length: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(UsageError) as caught:
        PromiseBoard(tmp_path, 0, 3)
    assert str(caught.value) == (
        f"TMPDIR: no space in {tmp_path} for 448 bytes that LP 0 shares with its peers: No space "
        "left on device; free some, or set TMPDIR to another directory"
    )
    assert list(tmp_path.iterdir()) == []


def test_a_limit_of_file_sizes_is_no_signal(tmp_path: Path) -> None:
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))
    try:
        with pytest.raises(UsageError, match=r"for 448 bytes .*: File too large"):
            PromiseBoard(tmp_path, 0, 3)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def test_the_file_of_a_peer_that_was_truncated_is_refused(tmp_path: Path) -> None:
    boards = PromiseBoard(tmp_path, 0, 3), PromiseBoard(tmp_path, 1, 3)
    os.truncate(tmp_path / "promises0", 10)
    with pytest.raises(UsageError, match="promises0 has 10 bytes and not 448: another process"):
        boards[1].open([0])
    for board in boards:
        board.close()
