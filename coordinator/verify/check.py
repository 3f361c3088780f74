"""`--verify-data`: is what the simulation computed what its own op log says, operation by operation and in the memories?"""

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
    """Replay the op logs of all SIPs and compare checksums of results, then what the memories hold.

    `written` holds, by SIP, what its host wrote, in the order of its records. `contents` are the (physical address, bytes) of
    what is not zero in the memories at the end of the run. A log that cannot be replayed is a verdict, not an error.
    """
    try:
        replay = Replay(logs, written)
        replay.run()
    except ReplayError as error:
        return Verdict(passed=False, operations=0, memories=(), problems=(str(error),))
    comparison = Comparison(replay, contents, addresses)
    problems = _first(comparison.differences, "buffers differ")
    if problems or replay.mismatches:
        # Where memories differ, rounding does not explain the first result with other bits.
        operations = replay.mismatches or replay.roundings
        problems = (*_first([str(each) for each in operations], "operations differ"), *problems)
    return Verdict(
        passed=not problems,
        operations=len(replay.operations),
        memories=comparison.statistics,
        problems=problems,
    )


def _first(lines: Sequence[str], what: str) -> tuple[str, ...]:
    """The first of many."""
    if not lines:
        return ()
    return (lines[0] if len(lines) == 1 else f"{lines[0]} ({len(lines):,} {what} in all)",)
