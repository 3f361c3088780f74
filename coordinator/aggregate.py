"""From what the LPs sent to one account of the run: the merged op log, the digest, and the contents of `run.json`."""

import platform
from collections.abc import Mapping, Sequence
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version

from msgspec import Struct

from coordinator.plan import Plan
from coordinator.session import RunResult
from coordinator.verify.verdict import Verdict
from coordinator.waits import Waits, waits_of
from runtime.core.bench_registry import BenchOutcome, PerfRow, Scalar, Table
from runtime.core.errors import IpcqDeadlock, ProtocolError
from runtime.core.simtime import ns_from_ps
from runtime.core.trace import OpRecord
from runtime.wire.messages import PROTOCOL_VERSION, Done, SipReport

_PACKAGES = ("kernbench", "numpy", "simpy", "pyzmq")


class LoggedOp(Struct, frozen=True):
    """One record of the merged op log: which SIP, which place in that SIP's own log, what happened."""

    sip: int
    index: int
    record: OpRecord


class SyncStatistics(Struct, frozen=True):
    """What synchronisation cost: rounds of the busiest LP; messages between LPs and null messages of all of them."""

    rounds: int
    messages: int
    null_messages: int


class RankSummary(Struct, frozen=True):
    """One rank and its SIP. `ok`, `wrong` and `unchecked` count the checks of a bench."""

    rank: int
    digest: str
    sim_time_ns: float
    finished: bool
    ok: int
    wrong: int
    unchecked: int
    counters: dict[str, int]


class LpSummary(Struct, frozen=True):
    """One LP: wall seconds it computed and wall seconds it waited for its peers."""

    lp: int
    sips: tuple[int, ...]
    events: int
    busy_s: float
    blocked_s: float


class RunReport(Struct, frozen=True):
    """The contents of `run.json`. `sim_time_ns` is the last event of the last SIP, or the last time heard of.

    `verification` is what `--verify-data` found; None where it was not asked for, or the run did not get to its end.
    """

    bench: str
    sips: int
    procs: int
    passed: bool
    error: str | None
    digest: str
    sim_time_ns: float
    startup_s: float
    wall_s: float
    events: int
    config_hash: str
    topology: str
    ccl: str
    arguments: dict[str, Scalar]
    argv: tuple[str, ...]
    data: bool
    jitter_ms: float
    jitter_seed: int
    verification: Verdict | None
    sync: SyncStatistics
    ranks: tuple[RankSummary, ...]
    lps: tuple[LpSummary, ...]
    waits: Waits
    versions: dict[str, str]
    protocol: int


def merge_op_log(logs: Mapping[int, Sequence[OpRecord]]) -> list[LoggedOp]:
    """The records of all SIPs in the order of `(start_ps, sip, index)`."""
    merged = [
        LoggedOp(sip, index, record)
        for sip in sorted(logs)
        for index, record in enumerate(logs[sip])
    ]
    merged.sort(key=lambda op: (op.record.start_ps, op.sip, op.index))
    return merged


def run_digest(sips: Sequence[SipReport]) -> str:
    """SHA-256 over the digests of all SIPs, one a line, in the order of their numbers."""
    ordered = sorted(sips, key=lambda report: report.sip)
    return sha256("".join(f"{report.digest}\n" for report in ordered).encode()).hexdigest()


def merge_outcomes(sips: Sequence[SipReport]) -> BenchOutcome | None:
    """The outcome of all ranks: checks are summed, a row takes as long as on the slowest rank. None without a bench."""
    outcomes = [
        report.outcome for report in sorted(sips, key=lambda report: report.sip) if report.outcome
    ]
    if not outcomes:
        return None
    first = outcomes[0]
    if any(len(outcome.rows) != len(first.rows) for outcome in outcomes):
        raise ProtocolError(
            "the ranks", f"their tables have {[len(o.rows) for o in outcomes]} rows"
        )
    rows = tuple(
        _merge_row(same) for same in zip(*(outcome.rows for outcome in outcomes), strict=True)
    )
    return BenchOutcome(
        first.label,
        sum(outcome.ok for outcome in outcomes),
        sum(outcome.wrong for outcome in outcomes),
        rows,
        sum(outcome.unchecked for outcome in outcomes),
        _merge_table([outcome.table for outcome in outcomes]),
    )


def wrong_elements(rows: Sequence[PerfRow]) -> int | None:
    """The wrong elements of all rows; None as soon as one of them could not be checked."""
    known = [row.wrong for row in rows if row.wrong is not None]
    return sum(known) if len(known) == len(rows) else None


def summarise(plan: Plan, result: RunResult, verdict: Verdict | None = None) -> RunReport:
    """The account of the run; partial when it failed, which `error` then says."""
    error = None if result.error is None else str(result.error)
    done = result.collected.done
    sips = sip_reports(done)
    outcome = merge_outcomes(sips) if error is None else None
    right = (outcome is None or outcome.wrong == 0) and (verdict is None or verdict.passed)
    return RunReport(
        bench=plan.program.name,
        sips=plan.sips,
        procs=plan.procs,
        passed=error is None and len(sips) == plan.sips and right,
        error=error,
        digest=run_digest(sips) if len(sips) == plan.sips else "",
        sim_time_ns=ns_from_ps(result.collected.time_ps),
        startup_s=round(result.startup_s, 6),
        wall_s=round(result.wall_s, 6),
        events=sum(lp.events for lp in done.values()),
        config_hash=plan.config.hash,
        topology=plan.config.topology_file,
        ccl=plan.config.ccl_file,
        arguments=dict(plan.program.arguments),
        argv=plan.program.argv,
        data=plan.data,
        jitter_ms=plan.jitter_ms,
        jitter_seed=plan.jitter_seed,
        verification=verdict,
        sync=_sync_statistics(done),
        ranks=tuple(_rank_summary(report) for report in sips),
        lps=tuple(_lp_summary(done[lp]) for lp in sorted(done)),
        waits=waits_of(sips, result.error.waits if isinstance(result.error, IpcqDeadlock) else ()),
        versions=versions(),
        protocol=PROTOCOL_VERSION,
    )


def sip_reports(done: Mapping[int, Done]) -> tuple[SipReport, ...]:
    """The reports of all SIPs, in the order of their numbers."""
    return tuple(
        sorted(
            (report for lp in done.values() for report in lp.sips), key=lambda report: report.sip
        )
    )


def versions() -> dict[str, str]:
    """What was run: kernbench, python and the packages that results could depend on."""
    return {"python": platform.python_version()} | {
        package: _version(package) for package in _PACKAGES
    }


def _merge_row(rows: tuple[PerfRow, ...]) -> PerfRow:
    slowest = max(rows, key=lambda row: row.time_ps)
    first = rows[0]
    # Bandwidth goes with the slowest rank: the collective is over when the last rank has its result.
    share = first.time_ps / slowest.time_ps if slowest.time_ps else 1.0
    return PerfRow(
        first.size_bytes,
        first.count,
        first.dtype,
        first.redop,
        slowest.time_ps,
        first.algbw_gbs * share,
        first.busbw_gbs * share,
        wrong_elements(rows),
    )


def _merge_table(tables: Sequence[Table | None]) -> Table | None:
    """The table with each row as the slowest rank has it, the lowest one of several."""
    present = [table for table in tables if table is not None]
    if not present:
        return None
    if (
        len({(t.labels, t.values, tuple(row.labels for row in t.rows)) for t in present}) > 1
        or None in tables
    ):
        raise ProtocolError("the ranks", "their tables differ in more than times and figures")
    rows = zip(*(table.rows for table in present), strict=True)
    return Table(
        present[0].labels,
        present[0].values,
        tuple(max(same, key=lambda row: row.time_ps) for same in rows),
    )


def _sync_statistics(done: Mapping[int, Done]) -> SyncStatistics:
    lps = done.values()
    rounds = max((lp.rounds for lp in lps), default=0)
    return SyncStatistics(
        rounds, sum(lp.messages for lp in lps), sum(lp.null_messages for lp in lps)
    )


def _rank_summary(report: SipReport) -> RankSummary:
    outcome = report.outcome or BenchOutcome("", 0, 0)
    return RankSummary(
        report.sip,
        report.digest,
        ns_from_ps(report.time_ps),
        report.finished,
        outcome.ok,
        outcome.wrong,
        outcome.unchecked,
        report.counters,
    )


def _lp_summary(done: Done) -> LpSummary:
    sips = tuple(report.sip for report in done.sips)
    return LpSummary(done.lp, sips, done.events, done.busy_s, done.blocked_s)


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
