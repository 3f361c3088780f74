"""The ceiling which the lookahead allows: a schedule of PHOLD with free synchronisation.

An LP may execute an event at time t as soon as every other LP has executed all of its events before
t - lookahead: only these can still cause an event before t. LPs have more or fewer events in a
lookahead by chance, so they wait for each other even then, and no conservative synchronisation
reaches the ceiling of processes that exchange nothing.
"""

from bisect import bisect_left
from dataclasses import replace

from kernbench.measure.host_speed.phold_model import Phold, Workload
from runtime.core.simtime import NEVER_PS
from runtime.wire.frames import Message


class _Arrivals(Phold):
    """All entities in one LP, which notes the time and the entity of every arrival."""

    def __init__(self, workload: Workload) -> None:
        self.noted: list[tuple[int, int]] = []
        super().__init__(workload, 0, 1, _no_peer)

    def arrive(self, time_ps: int, entity: int, source: int, seq: int) -> None:
        """Note an arrival and execute it."""
        self.noted.append((time_ps, entity))
        super().arrive(time_ps, entity, source, seq)


def balance(workload: Workload, lps: int) -> float:
    """The share of time in which LPs are busy in that schedule, if all events take equally long."""
    model = _Arrivals(replace(workload, work=0))
    events = model.run_before(NEVER_PS)
    times_ps = [list[int]() for _ in range(lps)]
    # By LP, when it has executed its first n events; an event takes one unit of time.
    ends = [[0] for _ in range(lps)]
    for time_ps, entity in model.noted:
        lp = workload.lp_of(entity, lps)
        before_ps = time_ps - workload.lookahead_ps
        # What others do before that time precedes this event in the list, so it has been placed.
        begin = max(ends[each][bisect_left(times_ps[each], before_ps)] for each in range(lps))
        times_ps[lp].append(time_ps)
        ends[lp].append(max(begin, ends[lp][-1]) + 1)
    return events / (lps * max(end[-1] for end in ends))


def _no_peer(peer: int, message: Message) -> None:
    raise AssertionError(f"{message} for LP {peer} in a run with one LP")
