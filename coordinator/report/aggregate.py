"""Aggregates the messages of the LPs: digest and outcome of a run, contents of `run.json`."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from coordinator.launch.placement import Placement
from coordinator.plan import Plan
from coordinator.report.cpu_capability import cpu_capability
from coordinator.session import RunResult
from coordinator.verify.verdict import Verdict
from coordinator.watch.waits import Waits, waits_of
from runtime.core.bench_registry import BenchOutcome, PerfRow, Scalar, Table
from runtime.core.code.imported_code import CodeFile, is_of_user
from runtime.core.errors import IpcqDeadlock, ProtocolError
from runtime.core.sha256 import sha256_hex
from runtime.core.simtime import ns_from_ps
from runtime.wire.control import Done
from runtime.wire.fields import PROTOCOL_VERSION
from runtime.wire.reports import SipReport

_LIBRARY = "runtime.core.compiled.build"
"""The module that every LP with the compiled core imports, and no other LP."""
_PACKAGES = ("kernbench", "numpy", "simpy", "pyzmq")


class SyncStatistics(Struct, frozen=True):
    """The cost of synchronisation: rounds of the busiest LP; messages and null messages of all."""

    rounds: int
    messages: int
    null_messages: int


class BetweenHosts(Struct, frozen=True):
    """Traffic of all LPs to LPs of other hosts, and the trips on the critical path of the run.

    `silence_frames` are the frames that are reports and grants. `trips` is the number of trips
    between hosts, one after the other, for which the run has waited: a network with a latency of λ
    adds `trips` · λ to its time. With `delay_us`, all LPs count as being on hosts of their own.
    """

    frames: int
    bytes: int
    silence_frames: int
    trips: int


class RankSummary(Struct, frozen=True):
    """The results of a rank and its SIP; `ok`, `wrong` and `unchecked` count checks of a bench."""

    rank: int
    digest: str
    sim_time_ns: float
    finished: bool
    ok: int
    wrong: int
    unchecked: int
    counters: dict[str, int]


class LpSummary(Struct, frozen=True):
    """The times of an LP: the wall time in which it computed, and in which it waited for peers.

    `host` is empty for an LP which the coordinator has started.
    `skipped_steps` are the steps of matrix products that it did not simulate but computed ahead;
    like the times, they vary from run to run. `listed_kernels` of the `kernels` on its PEs ran from
    a command list, and `repeated_kernels` were those of a launch that repeats an earlier one.
    """

    lp: int
    host: str
    sips: tuple[int, ...]
    events: int
    busy_s: float
    blocked_s: float
    skipped_steps: int
    kernels: int
    listed_kernels: int
    repeated_kernels: int


class RunReport(Struct, frozen=True):
    """The contents of `run.json`.

    `kind` and `program` are those of the `ProgramSpec`: with them, `arguments` and `argv` a run can
    be repeated. `incomplete` are the SIPs whose op log and records end early, since their LP has
    not reported its end. `sim_time_ns` is the time of the last event of all SIPs, or the last
    reported time of a run that failed. `verification` is the result of `--verify-data`, None
    without it or if the run failed. `core` is `compiled` if an LP ran the compiled core, else
    `python`. `code` is the SHA-256 of the source of every module that an LP has imported;
    `user_code` has the files of those which are not of kernbench, and `folder` is the working
    directory. `files` is the SHA-256 of the tables and configuration files beside it, `inode` the
    number of their directory: both are set when it is written. `cpu` is the vector unit of the
    host: operators of PyTorch that run there may depend on it. `strangers` are the processes that
    are not of the run and were refused: how many, by socket and reason; `stranger_addresses` are
    the first of their addresses. `between_hosts` is what all LPs have sent to LPs of other hosts.
    """

    bench: str
    kind: str
    program: str
    as_cuda: bool
    sips: int
    procs: int
    passed: bool
    error: str | None
    incomplete: tuple[int, ...]
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
    delay_us: float | None
    verification: Verdict | None
    sync: SyncStatistics
    ranks: tuple[RankSummary, ...]
    lps: tuple[LpSummary, ...]
    waits: Waits
    strangers: dict[str, dict[str, int]]
    stranger_addresses: dict[str, dict[str, tuple[str, ...]]]
    between_hosts: BetweenHosts
    versions: dict[str, str]
    cpu: str
    protocol: int
    core: str
    code: dict[str, str]
    user_code: dict[str, CodeFile]
    folder: str
    files: dict[str, str] = {}
    inode: int = 0


def run_digest(sips: Sequence[SipReport]) -> str:
    """SHA-256 over the digests of all SIPs, one per line, in the order of the SIPs."""
    # By SIP and not by LP: the digest must not depend on the number of processes.
    ordered = sorted(sips, key=lambda report: report.sip)
    return sha256_hex("".join(f"{report.digest}\n" for report in ordered).encode())


def merge_outcomes(sips: Sequence[SipReport]) -> BenchOutcome | None:
    """The outcome of all ranks, None without a bench.

    Checks are summed; a row has the time of the slowest rank, because a collective is complete when
    the last rank has its result.
    """
    outcomes = [
        report.outcome for report in sorted(sips, key=lambda report: report.sip) if report.outcome
    ]
    if not outcomes:
        return None
    first = outcomes[0]
    # Every rank runs the same bench; tables of different length are an error of a rank.
    if any(len(outcome.rows) != len(first.rows) for outcome in outcomes):
        raise ProtocolError(
            "the ranks", f"their tables have {[len(o.rows) for o in outcomes]} rows"
        )
    rows = tuple(
        _merge_row(same) for same in zip(*(outcome.rows for outcome in outcomes), strict=True)
    )
    return BenchOutcome(
        label=first.label,
        ok=sum(outcome.ok for outcome in outcomes),
        wrong=sum(outcome.wrong for outcome in outcomes),
        rows=rows,
        unchecked=sum(outcome.unchecked for outcome in outcomes),
        table=_merge_table([outcome.table for outcome in outcomes]),
    )


def wrong_elements(rows: Sequence[PerfRow]) -> int | None:
    """The number of wrong elements in all rows; None if a row was not checked."""
    known = [row.wrong for row in rows if row.wrong is not None]
    return sum(known) if len(known) == len(rows) else None


def summarise(plan: Plan, result: RunResult, verdict: Verdict | None = None) -> RunReport:
    """The report of the run; partial if the run failed, with the reason in `error`."""
    error = None if result.error is None else str(result.error)
    done = result.collected.done
    sips = sip_reports(done)
    outcome = merge_outcomes(sips) if result.is_complete else None
    correct = (outcome is None or outcome.wrong == 0) and (verdict is None or verdict.passed)
    return RunReport(
        bench=plan.program.name,
        kind=plan.program.kind,
        program=plan.program.path,
        as_cuda=plan.program.as_cuda,
        sips=plan.sips,
        procs=plan.procs,
        passed=error is None and len(sips) == plan.sips and correct,
        error=error,
        incomplete=_incomplete(plan, done),
        # A digest over some of the SIPs would be compared with that of a complete run.
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
        delay_us=plan.delay_us,
        verification=verdict,
        sync=_sync_statistics(done),
        ranks=tuple(_rank_summary(report) for report in sips),
        lps=tuple(_lp_summary(done[lp], result.placement) for lp in sorted(done)),
        waits=waits_of(sips, result.error.waits if isinstance(result.error, IpcqDeadlock) else ()),
        strangers={
            socket: {each.reason: each.times for each in refused}
            for socket, refused in result.strangers.items()
        },
        stranger_addresses={
            socket: {each.reason: each.addresses for each in refused if each.addresses}
            for socket, refused in result.strangers.items()
        },
        between_hosts=between_hosts(done),
        versions=versions(),
        cpu=cpu_capability(),
        protocol=PROTOCOL_VERSION,
        core="compiled" if _LIBRARY in result.code else "python",
        code={module: file.sha256 for module, file in result.code.items()},
        user_code=_user_code(result.code),
        folder=str(Path.cwd()),
    )


def _incomplete(plan: Plan, done: Mapping[int, Done]) -> tuple[int, ...]:
    return tuple(sip for lp, sips in enumerate(plan.sips_of_lp) if lp not in done for sip in sips)


def _user_code(code: Mapping[str, CodeFile]) -> dict[str, CodeFile]:
    """The modules of the user, with the absolute paths of their files."""
    return {
        module: CodeFile(os.path.realpath(file), sha256)
        for module, (file, sha256) in code.items()
        if is_of_user(module)
    }


def sip_reports(done: Mapping[int, Done]) -> tuple[SipReport, ...]:
    """The reports of all SIPs in ascending order."""
    return tuple(
        sorted(
            (report for lp in done.values() for report in lp.sips), key=lambda report: report.sip
        )
    )


def versions() -> dict[str, str]:
    """The versions of kernbench, Python and the packages that results could depend on."""
    # Both take long to import, and are needed at the end of a run only.
    import platform

    return {"python": platform.python_version()} | {
        package: _version(package) for package in _PACKAGES
    }


def _merge_row(rows: tuple[PerfRow, ...]) -> PerfRow:
    slowest = max(rows, key=lambda row: row.time_ps)
    first = rows[0]
    # Bandwidth = bytes / time, so that of the slowest rank follows from any other's by the times.
    ratio = first.time_ps / slowest.time_ps if slowest.time_ps else 1.0
    return PerfRow(
        size_bytes=first.size_bytes,
        count=first.count,
        dtype=first.dtype,
        redop=first.redop,
        time_ps=slowest.time_ps,
        algbw_gbs=first.algbw_gbs * ratio,
        busbw_gbs=first.busbw_gbs * ratio,
        wrong=wrong_elements(rows),
    )


def _merge_table(tables: Sequence[Table | None]) -> Table | None:
    """The table with each row of the slowest rank; of several slowest ranks, of the lowest."""
    present = [table for table in tables if table is not None]
    if not present:
        return None
    if (
        len({(t.labels, t.values, tuple(row.labels for row in t.rows)) for t in present}) > 1
        or None in tables
    ):
        raise ProtocolError("the ranks", "their tables differ in more than times and values")
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


def between_hosts(done: Mapping[int, Done]) -> BetweenHosts:
    """The traffic between hosts of a run."""
    traffic = [lp.between_hosts for lp in done.values()]
    return BetweenHosts(
        frames=sum(lp.frames for lp in traffic),
        bytes=sum(lp.bytes for lp in traffic),
        silence_frames=sum(lp.silence_frames for lp in traffic),
        trips=max((lp.trips for lp in traffic), default=0),
    )


def _rank_summary(report: SipReport) -> RankSummary:
    outcome = report.outcome or BenchOutcome("", 0, 0)
    return RankSummary(
        rank=report.sip,
        digest=report.digest,
        sim_time_ns=ns_from_ps(report.time_ps),
        finished=report.finished,
        ok=outcome.ok,
        wrong=outcome.wrong,
        unchecked=outcome.unchecked,
        counters=report.counters,
    )


def _lp_summary(done: Done, placement: Placement | None) -> LpSummary:
    return LpSummary(
        lp=done.lp,
        host="" if placement is None else placement.host_of(done.lp),
        sips=tuple(report.sip for report in done.sips),
        events=done.events,
        busy_s=done.busy_s,
        blocked_s=done.blocked_s,
        skipped_steps=done.skipped_steps,
        kernels=done.kernels,
        listed_kernels=done.listed_kernels,
        repeated_kernels=done.repeated_kernels,
    )


def _version(package: str) -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
