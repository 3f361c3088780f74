"""Every collective of `perf` on small chips: right data, a time above its bound, wrong kernels."""

import re
from dataclasses import asdict, replace

import pytest
import yaml

from kernbench.benches.collective_perf.bound import CollectiveBounds, mean
from kernbench.benches.collective_perf.collective import (
    COLLECTIVES,
    PerfCase,
    PerfParameters,
    perf_cases,
)
from kernbench.benches.collective_perf.program import collective_perf
from runtime.ccl.config import parse_ccl
from runtime.core.bench_registry import BenchOutcome
from runtime.core.config.config_file import default_file
from runtime.core.errors import UsageError
from runtime.model.topology import parse_topology
from tests.support.perf_parameters import PARAMETERS as SMALL
from tests.support.topologies import variant_text
from tests.support.world import simulate

ONE_CUBE = variant_text(
    sip__cube_mesh={"w": 1, "h": 1},
    cube__pe_layout__pe_per_corner=1,
    cube__pe_layout__corners=["NW", "SE"],
)
PARAMETERS = replace(
    SMALL, min_bytes=48, max_bytes=48, step_bytes=1, step_factor=1, dtype="int32", pes=2
)


def measured(
    parameters: PerfParameters, sips: int, *, ccl: str | None = None, data: bool = True
) -> list[BenchOutcome]:
    def program(rank: int) -> BenchOutcome:
        return collective_perf(rank, **asdict(parameters))

    world = simulate(program, sips, topology=ONE_CUBE, ccl=ccl, data=data)
    return [world.returned[rank] for rank in range(sips)]


def ccl_with(module: str, **values: object) -> str:
    content = yaml.safe_load(default_file("ccl.yaml").read_text())
    content["algorithms"]["ring"] |= {"module": module, **values}
    # The run must use the replaced module.
    content["selection"]["by_size"] = {}
    return yaml.safe_dump(content)


def ccl_of_two_algorithms(call: str, up_to_bytes: int) -> str:
    """`ring` runs small calls, and `other`, which is a copy of it, runs larger calls."""
    content = yaml.safe_load(default_file("ccl.yaml").read_text())
    content["algorithms"]["other"] = content["algorithms"]["ring"]
    content["selection"]["by_size"] = {
        call: [{"algorithm": "ring", "up_to_bytes": up_to_bytes}, {"algorithm": "other"}]
    }
    return yaml.safe_dump(content)


def ccl_of_sends(mapper: str) -> str:
    content = yaml.safe_load(default_file("ccl.yaml").read_text())
    content["algorithms"]["point_to_point"]["mapper"] = mapper
    return yaml.safe_dump(content)


@pytest.mark.parametrize("sips", [1, 2, 3])
@pytest.mark.parametrize("name", list(COLLECTIVES))
def test_every_collective_is_right_and_no_faster_than_its_bound(name: str, sips: int):
    parameters = replace(PARAMETERS, collective=name, root=sips - 1)
    [case] = perf_cases(parameters, sips)
    topology = parse_topology(ONE_CUBE, "small", sips)
    bounds = CollectiveBounds(topology, parameters.cube_numbers, parameters.pes)
    together, apart = (bounds.of(case, apart=apart) for apart in (False, True))
    outcomes = measured(parameters, sips)
    rows = [outcome.rows[0] for outcome in outcomes]
    assert [(row.size_bytes, row.count, row.wrong) for row in rows] == [
        (case.size_bytes, case.count, 0)
    ] * sips
    assert [(outcome.ok, outcome.wrong) for outcome in outcomes] == [(1, 0)] * sips
    times_ps = [row.time_ps for row in rows]
    assert max(times_ps) > max(bound.time_ps for bound in together)
    assert sum(times_ps) > sips * mean(together).time_ps
    assert all(time > bound.time_ps for time, bound in zip(times_ps, apart, strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("name", list(COLLECTIVES))
def test_parts_larger_than_the_receive_rings_are_right_with_every_reduction(name: str):
    nbytes = 3 * 2 * 18_000
    parameters = replace(
        PARAMETERS,
        collective=name,
        min_bytes=nbytes,
        max_bytes=nbytes,
        op="all",
        dtype="half",
        warmup=0,
    )
    outcomes = measured(parameters, 3)
    rows = list(perf_cases(parameters, 3))
    assert [(outcome.ok, outcome.wrong) for outcome in outcomes] == [(len(rows), 0)] * 3


@pytest.mark.slow
def test_every_type_and_reduction_is_right():
    [first, second] = measured(replace(PARAMETERS, op="all", dtype="all", warmup=0), 2)
    assert (first.ok, first.wrong) == (second.ok, second.wrong) == (5 * 5 - 2, 0)


def test_iterations_are_averaged_and_only_the_first_pays_the_way_from_and_to_the_host():
    once, often = (measured(replace(PARAMETERS, iters=iters), 2)[0].rows[0] for iters in (1, 4))
    assert often.wrong == 0
    iteration_ps = (4 * often.time_ps - once.time_ps) / 3
    # The PCIe endpoint twice and the IO_CPU, besides the bytes of a launch and of its answer.
    assert once.time_ps - iteration_ps == pytest.approx(100_000 + 10_000 + 100_000, rel=0.02)


@pytest.mark.parametrize(
    "parameters", [replace(PARAMETERS, check=0), PARAMETERS], ids=["no check", "no data"]
)
def test_unchecked_data_is_neither_right_nor_wrong(parameters: PerfParameters):
    with_data = parameters.check == 0
    [first, _] = measured(parameters, 2, data=with_data)
    assert (first.ok, first.wrong, first.unchecked, first.rows[0].wrong) == (0, 0, 1, None)
    assert first.rows[0].time_ps == measured(PARAMETERS, 2)[0].rows[0].time_ps


def test_every_element_that_a_wrong_kernel_spoils_is_counted_at_every_check():
    wrong = ccl_with("tests.support.wrong_collectives")
    shards_of_all_ranks = 2 * 2
    rows = [
        outcome.rows[0].wrong for outcome in measured(replace(PARAMETERS, check=3), 2, ccl=wrong)
    ]
    assert sum(filter(None, rows)) == 3 * shards_of_all_ranks
    assert [outcome.wrong for outcome in measured(PARAMETERS, 2, ccl=wrong)] == [1, 1]


def test_a_reduce_that_changes_the_other_ranks_is_wrong_on_them():
    wrong = ccl_with("tests.support.wrong_collectives")
    rows = [
        outcome.rows[0].wrong
        for outcome in measured(replace(PARAMETERS, collective="reduce", root=1), 3, ccl=wrong)
    ]
    assert rows == [12, 0, 12]


@pytest.mark.parametrize(
    ("parameters", "ccl", "problem"),
    [
        (
            replace(PARAMETERS, algorithm="intercube"),
            None,
            "perf measures collectives between ranks; --bench ccl-allreduce --algorithm intercube",
        ),
        (
            replace(PARAMETERS, collective="alltoall", algorithm="ring"),
            ccl_with("tests.support.wrong_collectives"),
            "perf: algorithm 'ring' does not support all_to_all_single",
        ),
        (
            replace(PARAMETERS),
            ccl_with("runtime.ccl.algorithms.ring", validator="single_shard_per_rank"),
            "needs a single shard",
        ),
        (
            replace(PARAMETERS, collective="sendrecv"),
            ccl_of_sends("leader_only"),
            (
                "perf: sendrecv with algorithm 'point_to_point': the shard on sip . cube 0 "
                "pe 1 is not on"
            ),
        ),
    ],
    ids=["sums inside a SIP", "no such kernel", "placement", "no queues"],
)
def test_what_the_algorithm_cannot_do_is_the_fault_of_the_command_line(
    parameters: PerfParameters, ccl: str | None, problem: str
):
    with pytest.raises(UsageError, match=problem):
        measured(parameters, 2, ccl=ccl)


@pytest.mark.parametrize("name", [name for name, each in COLLECTIVES.items() if each.call])
def test_a_row_names_the_algorithm_that_ran(name: str):
    parameters = replace(
        PARAMETERS,
        collective=name,
        algorithm="auto",
        max_bytes=96,
        step_bytes=48,
        warmup=0,
        check=0,
    )
    text = ccl_of_two_algorithms(COLLECTIVES[name].call, 48)

    def program(rank: int) -> BenchOutcome:
        return collective_perf(rank, **asdict(parameters))

    world = simulate(program, 2, topology=ONE_CUBE, ccl=text)
    records = [
        record
        for sip, record in world.of("pe_cpu.collective", "kernel ")
        if (sip, record.pe) == (0, 0)
    ]
    # Before each row there is a barrier, which is an all-reduce.
    ran = [
        record.name.rpartition(".")[2]
        for record in sorted(records, key=lambda record: record.start_ps)
    ][1::2]
    ccl = parse_ccl(text, "ccl.yaml")
    assert ran == [case.algorithm(ccl, "auto") for case in perf_cases(parameters, 2)]
    # Where the output is the larger buffer, calls of both sizes give 48 bytes a rank or less.
    assert ran[-1] == ("ring" if name == "all_gather" else "other")


def test_sends_need_their_queues_with_every_algorithm():
    parameters = replace(PARAMETERS, collective="sendrecv")
    content = yaml.safe_load(default_file("ccl.yaml").read_text())
    del content["algorithms"]["point_to_point"]
    [case] = perf_cases(parameters, 2)
    assert (
        case.algorithm(parse_ccl(yaml.safe_dump(content), "ccl.yaml"), "ring") == "point_to_point"
    )
    with pytest.raises(
        UsageError, match="perf: sendrecv needs the queues of the algorithm 'point_to_point', which"
    ):
        measured(parameters, 2, ccl=yaml.safe_dump(content))


def test_a_collective_without_partial_results_is_reported_on_rank_0(
    monkeypatch: pytest.MonkeyPatch, capfd
) -> None:
    monkeypatch.setattr("kernbench.benches.collective_perf.program.SILENCE_S", 0.0)
    [row] = measured(PARAMETERS, 2)[0].rows
    [line] = capfd.readouterr().err.splitlines()
    assert re.fullmatch(rf"# {row.size_bytes} B: {row.time_ps / 1e6:.2f} us on rank 0", line)


def test_a_case_follows_from_its_row():
    outcome = measured(
        replace(PARAMETERS, collective="all_gather", min_bytes=50, max_bytes=50, dtype="half"), 3
    )[0]
    expected = PerfCase(
        collective=COLLECTIVES["all_gather"],
        ranks=3,
        count=8,
        dtype_name="half",
        op="none",
        root=-1,
    )
    row = outcome.rows[0]
    assert (row.count, row.size_bytes, row.dtype, row.redop) == (8, 48, "half", "none")
    assert row.algbw_gbs == expected.algbw_gbs(row.time_ps)
    assert row.busbw_gbs == expected.busbw_gbs(row.time_ps)
