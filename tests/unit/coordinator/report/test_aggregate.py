"""The digest and outcome of a run."""

from hashlib import sha256

import pytest

from coordinator.report.aggregate import (
    BetweenHosts,
    between_hosts,
    merge_outcomes,
    run_digest,
    summarise,
)
from coordinator.session import RunResult
from coordinator.watch.collected import Collected
from coordinator.watch.failure import Interrupted
from runtime.core.bench_registry import BenchOutcome, PerfRow
from runtime.core.errors import ProtocolError
from runtime.wire.control import Done, HostTraffic
from runtime.wire.reports import SipReport
from tests.support.lp_reports import done_of
from tests.support.sessions import plan


def report(sip: int, digest: str = "", outcome: BenchOutcome | None = None) -> SipReport:
    return SipReport(sip, digest, 0, True, outcome, {}, (), "")


def test_the_digest_of_a_run_covers_the_sips_in_the_order_of_their_numbers():
    assert run_digest([report(1, "b"), report(0, "a")]) == sha256(b"a\nb\n").hexdigest()
    assert run_digest([report(0, "b"), report(1, "a")]) != run_digest(
        [report(0, "a"), report(1, "b")]
    )


def row(time_ps: int, wrong: int | None = 0) -> PerfRow:
    return PerfRow(1024, 256, "f32", "sum", time_ps, 2.0, 3.0, wrong)


def test_a_row_takes_as_long_as_on_the_slowest_rank_and_its_bandwidth_goes_with_it():
    ranks = [
        report(0, outcome=BenchOutcome("x", 16, 0, (row(100),))),
        report(1, outcome=BenchOutcome("x", 14, 2, (row(200, 2),))),
    ]
    merged = merge_outcomes(ranks)
    assert merged == BenchOutcome("x", 30, 2, (PerfRow(1024, 256, "f32", "sum", 200, 1.0, 1.5, 2),))


def test_what_one_rank_could_not_check_is_unknown_for_all():
    ranks = [
        report(0, outcome=BenchOutcome("x", 0, 0, (row(100, None),), unchecked=16)),
        report(1, outcome=BenchOutcome("x", 0, 0, (row(100, 0),), unchecked=16)),
    ]
    merged = merge_outcomes(ranks)
    assert merged is not None
    assert (merged.unchecked, merged.rows[0].wrong) == (32, None)


def test_ranks_without_outcome_have_none_together():
    assert merge_outcomes([report(0), report(1)]) is None


def test_tables_of_different_length_cannot_be_merged():
    with pytest.raises(ProtocolError, match=r"\[1, 0\] rows"):
        merge_outcomes(
            [
                report(0, outcome=BenchOutcome("x", 1, 0, (row(1),))),
                report(1, outcome=BenchOutcome("x", 1, 0)),
            ]
        )


def test_a_report_names_the_sips_whose_records_end_early():
    collected = Collected(done={0: pair_of(0)})
    result = RunResult(collected, Interrupted(2, 0), startup_s=0.0, wall_s=0.0)
    assert summarise(plan(sips=4, procs=2), result).incomplete == (2, 3)
    collected.done[1] = pair_of(1)
    assert summarise(plan(sips=4, procs=2), result).incomplete == ()


def pair_of(lp: int) -> Done:
    return done_of(lp, *(report(sip) for sip in (2 * lp, 2 * lp + 1)))


def test_traffic_between_hosts_is_summed_and_the_trips_are_those_of_the_longest_chain():
    done = {
        lp: done_of(lp, between_hosts=traffic)
        for lp, traffic in enumerate([HostTraffic(5, 500, 1, 9), HostTraffic(6, 600, 2, 7)])
    }
    assert between_hosts(done) == BetweenHosts(frames=11, bytes=1100, silence_frames=3, trips=9)
    assert between_hosts({}) == BetweenHosts(0, 0, 0, 0)
