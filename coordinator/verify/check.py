"""Implements `--verify-data`: checks the simulation's data against a replay of its op log.

Two comparisons: the checksum of every operation's result, and every byte of the memories at the
end. The replay computes with its own implementation of the operations (`operations.py`), which
shares no code with the simulation.
"""

from collections.abc import Iterable, Mapping, Sequence

from coordinator.verify.comparison import Comparison
from coordinator.verify.replay import Replay, ReplayError
from coordinator.verify.verdict import Verdict
from runtime.core.trace import OpRecord
from runtime.model.addresses import AddressMap


def verify(
    logs: Mapping[int, Sequence[OpRecord]],
    written: Mapping[int, bytes | bytearray],
    contents: Iterable[tuple[int, bytes]],
    addresses: AddressMap,
) -> Verdict:
    """Replay the op logs of all SIPs; compare the checksums of results, then the memories.

    `written` holds, by SIP, the data of its host's writes in the order of their records. `contents`
    are the (physical address, bytes) of everything that is not zero in the memories at the end. A
    log that cannot be replayed gives a verdict, not an error.
    """
    try:
        replay = Replay(logs, written)
        replay.run()
    except ReplayError as error:
        return Verdict(passed=False, operations=0, memories=(), problems=(str(error),))
    comparison = Comparison(replay, contents, addresses)
    problems = _first(comparison.differences, "buffers differ")
    if problems or replay.mismatches:
        # If memories differ by more than rounding, the first operation whose bits deviate is a
        # likely cause even if rounding alone could have explained it.
        operations = replay.mismatches or replay.roundings
        problems = (*_first([str(each) for each in operations], "operations differ"), *problems)
    return Verdict(
        passed=not problems,
        operations=len(replay.operations),
        memories=comparison.statistics,
        problems=problems,
    )


def _first(lines: Sequence[str], what: str) -> tuple[str, ...]:
    """The first line with the number of all."""
    if not lines:
        return ()
    return (lines[0] if len(lines) == 1 else f"{lines[0]} ({len(lines):,} {what} in all)",)
