"""Finds the ranks that keep others waiting in a collective for longer than its group allows.

Simulated time stands still while the program of a rank computes in Python, so the wall time of a
wait is not that of the collective. It is what the late rank computes and the others do not:

- While it computes: some rank has called the collective, the late rank has not, and has computed
  for the time limit of the group since then.
- When it has called: it had computed since its collective before for the time limit longer than
  another rank. That rank could not call earlier, since simulated time stood still, perhaps before
  the end of its collective before.

Time in which the run simulates does not count.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from runtime.wire.control import GroupCalls, RankActivity

_UNKNOWN_S = 0.5
"""The upper bound of a time that is not reported."""


@dataclass(frozen=True)
class LateRanks:
    """A collective for which ranks waited longer than the limit; `late` is one of the missing.

    `by_group`: the limit is that of the process group. `computes`: the late rank still does.
    """

    name: str
    call: int
    group: str
    limit_s: float
    by_group: bool
    waiting: tuple[int, ...]
    missing: tuple[int, ...]
    late: int
    computes: bool


@dataclass(frozen=True)
class _Wait:
    """A call in which a rank waits, and what each rank had computed when the wait began."""

    calls: GroupCalls
    python_s: Mapping[int, float]


class CollectiveWaits:
    """The collectives in which ranks wait.

    `limit_s` replaces the limits of the groups, unless it is None; 0 means no limit.
    """

    def __init__(self, limit_s: float | None) -> None:
        self._limit_s = limit_s
        self._python_s: dict[int, float] = {}
        self._groups: dict[tuple[int, str], GroupCalls] = {}
        self._waits: dict[tuple[int, str], _Wait] = {}
        self.longest_limit_s = 0.0

    def received(self, ranks: Iterable[RankActivity], stretch_s: float = 0.0) -> None:
        """Record a report of an LP, one of whose programs has been computing for `stretch_s`."""
        ranks = tuple(ranks)
        # A rank that waits beside the program in one process has waited for as long as that.
        began_s = dict(self._python_s)
        for each in ranks:
            self._python_s[each.rank] = each.python_s
            began_s[each.rank] = max(began_s.get(each.rank, 0.0), each.python_s - stretch_s)
        for each in ranks:
            for calls in each.groups:
                self._record(each.rank, calls, began_s)

    def _record(self, rank: int, calls: GroupCalls, began_s: Mapping[int, float]) -> None:
        key = rank, calls.group
        self._groups[key] = calls
        self.longest_limit_s = max(self.longest_limit_s, calls.timeout_s)
        wait = self._waits.get(key)
        if not calls.open_call:
            self._waits.pop(key, None)
        elif wait is None or wait.calls.open_call != calls.open_call:
            self._waits[key] = _Wait(calls, began_s)

    def overdue(self) -> LateRanks | None:
        """The first wait that is too long, or None."""
        for wait in self._waits.values():
            calls = wait.calls
            limit_s = calls.timeout_s if self._limit_s is None else self._limit_s
            missing = tuple(rank for rank in calls.ranks if not self._has_called(rank, calls))
            late = [
                rank
                for rank in missing
                if self._python_s.get(rank, 0.0) - wait.python_s.get(rank, 0.0) >= limit_s > 0
            ]
            # By the time that a rank has computed, not by the wall clock: a machine under load is
            # no fault.
            if late:
                waiting = tuple(rank for rank in calls.ranks if rank not in missing)
                return LateRanks(
                    name=calls.open_name,
                    call=calls.open_call,
                    group=calls.group,
                    limit_s=limit_s,
                    by_group=self._limit_s is None,
                    waiting=waiting,
                    missing=missing,
                    late=late[0],
                    computes=True,
                )
        return self._called_late()

    def _called_late(self) -> LateRanks | None:
        for calls in self._groups.values():
            limit_s = calls.timeout_s if self._limit_s is None else self._limit_s
            for slow in calls.slow_calls:
                computed_s = {
                    rank: self._computed_s(rank, calls.group, slow.call) for rank in calls.ranks
                }
                # A rank that has not called yet may compute for longer than all others.
                if not limit_s or None in computed_s.values():
                    continue
                known = {rank: each for rank, each in computed_s.items() if each is not None}
                # Compared with the first to call: a collective can begin only when all have.
                missing = tuple(r for r in known if known[r] - min(known.values()) >= limit_s)
                if missing:
                    return LateRanks(
                        name=slow.name,
                        call=slow.call,
                        group=calls.group,
                        limit_s=limit_s,
                        by_group=self._limit_s is None,
                        waiting=tuple(rank for rank in calls.ranks if rank not in missing),
                        missing=missing,
                        late=missing[0],
                        computes=False,
                    )
        return None

    def _computed_s(self, rank: int, group: str, call: int) -> float | None:
        """The seconds for which a rank computed before a call; None if it has not called."""
        calls = self._groups.get((rank, group))
        if calls is None or calls.calls < call:
            return None
        # A shorter time than that of a slow call is not reported: at most half a second.
        return next((slow.python_s for slow in calls.slow_calls if slow.call == call), _UNKNOWN_S)

    def _has_called(self, rank: int, calls: GroupCalls) -> bool:
        own = self._groups.get((rank, calls.group))
        return own is not None and own.calls >= calls.open_call
