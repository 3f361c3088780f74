"""The TCM that loads and products may take ahead of their place in the program."""

from collections.abc import Iterable, Sequence

from kernbench.triton.tape.tape import TapeCommand, TapeStorage


def bytes_ahead(
    commands: Sequence[TapeCommand], live: Iterable[TapeStorage], free_bytes: int
) -> int:
    """The bytes that the tape leaves free, if it runs in the order of the program.

    `live` are the storages of the tape with their last uses; those with a value take memory before
    it begins, and `free_bytes` are free then.
    """
    storages = list(live)
    held = sum(each.nbytes for each in storages if each.value is not None)
    ends = dict[int, int]()
    for storage in storages:
        ends[storage.last] = ends.get(storage.last, 0) + storage.nbytes
    begun = set[TapeStorage]()
    in_use = peak = held
    for position, command in enumerate(commands):
        target = command.writes()
        if target is not None and target.value is None and target not in begun:
            begun.add(target)
            in_use += target.nbytes
            peak = max(peak, in_use)
        in_use -= ends.get(position, 0)
    capacity = free_bytes + held
    largest = max((each.nbytes for each in storages), default=0)
    # The rest is for gaps between values, and for chains, which need their results at once.
    return capacity - peak - max(capacity // 8, 2 * largest)
