"""The busiest links and engines, and the bound, of hand-made runs."""

from collections.abc import Sequence
from pathlib import Path

from kernbench.explain.records import open_run
from kernbench.explain.why.bound import run_bound
from kernbench.explain.why.load import busiest, loads
from tests.support.hand_made_runs import a_slot_and_its_credit, one_kernel
from tests.support.run_tables import Row, op, program, step, tables, write_run


def link(name: str, number: int, busy_ps: int, **rest: int) -> Row:
    return {"link": name, "kind": "link", "bin": number, "busy_ps": busy_ps} | rest


def test_the_load_of_a_link_is_the_sum_of_its_bins_and_its_fullest_one(tmp_path: Path):
    links = [
        link("a", 0, 512, nbytes=64, queued_ps=5, packets=1),
        link("b", 0, 100),
        link("a", 3, 768, nbytes=96, queued_ps=7, packets=2),
    ]
    records = open_run(write_run(tmp_path / "run", [tables(links=links)], 4096))
    first, second = loads(records)["link"]
    assert (first.name, first.busy_ps, first.queued_ps, first.count) == ("a", 1280, 12, 3)
    assert (first.nbytes, first.peak, first.peak_ps) == (160, 0.75, 3 * 1024)
    assert (second.name, second.busy_ps) == ("b", 100)


def test_resources_of_all_sips_are_ranked_together(tmp_path: Path):
    sips = [tables(links=[link("a", 0, busy_ps)]) for busy_ps in (10, 30, 20)]
    records = open_run(write_run(tmp_path / "run", sips, 100))
    assert [(each.sip, each.busy_ps) for each in loads(records, 2)["link"]] == [(1, 30), (2, 20)]


def test_a_transfer_engine_is_busy_while_any_of_its_channels_is(tmp_path: Path):
    pe = {"cube": 1, "pe": 2}
    ops = [
        op("pe_dma", "load", 0, 60, nbytes=8, **pe),
        op("pe_dma", "load", 40, 100, requested_ps=10, nbytes=8, **pe),
        op("pe_dma", "load", 2048, 3000, cube=0, pe=0),
        op("pe_cpu", "kernel", 0, 4000, **pe),
    ]
    records = open_run(write_run(tmp_path / "run", [tables(ops)], 4096))
    second, first = loads(records)["transfer engine"]
    assert (first.name, first.busy_ps, first.queued_ps) == ("cube1.pe2.pe_dma", 100, 30)
    assert (first.count, first.nbytes, first.peak, first.peak_ps) == (2, 16, 100 / 1024, 0)
    assert (second.name, second.peak, second.peak_ps) == ("cube0.pe0.pe_dma", 952 / 1024, 2048)


def two_of_one(engine: str) -> dict[str, Sequence[Row]]:
    """A kernel with two operations of an engine, the second behind the first."""
    pe = {"cube": 0, "pe": 0}
    return tables(
        ops=[
            op(engine, "first", 0, 60, **pe),
            op(engine, "second", 60, 90, requested_ps=10, **pe),
        ],
        programs=[program(1, 0, 90, **pe), program(0, 0, 90)],
        steps=[
            step(1, "load_async", 0, 10),
            step(1, "load", 10, 90, released_by=1),
            step(0, "synchronize", 0, 90, released_by=1),
        ],
    )


def test_the_chain_without_queues_bounds_a_run_that_waited_little(tmp_path: Path):
    records = open_run(write_run(tmp_path / "run", a_slot_and_its_credit(), 1000))
    bound = run_bound(records)
    # Of 1,000 ps the second send waited 20 for its engine.
    assert (bound.is_of_path, bound.path_ps, bound.bound_ps) == (True, 980, 980)
    # Its DMA engines are transfer engines, and nothing else has a load.
    assert (bound.resource, bound.resource_ps, bound.reached) == (None, 0, 0.98)


def test_the_busiest_resource_bounds_a_run_that_waited_for_it(tmp_path: Path):
    sip = dict(one_kernel())
    sip["links"] = [link("a->b", 0, 950)]
    bound = run_bound(open_run(write_run(tmp_path / "run", [sip], 1000)))
    assert bound.resource is not None
    assert (bound.is_of_path, bound.resource.name, bound.bound_ps) == (False, "a->b", 950)
    # 6 ps in the queue of the DMA, 46 at a link, 100 at a memory.
    assert bound.path_ps == 1000 - 6 - 46 - 100


def test_a_chain_that_waits_for_an_engine_is_bounded_without_what_the_engine_did(tmp_path: Path):
    bound = run_bound(open_run(write_run(tmp_path / "run", [two_of_one("pe_gemm")], 90)))
    assert (bound.path_ps, bound.resource_ps, bound.is_of_path) == (40, 90, False)


def test_the_busy_time_of_a_transfer_engine_is_no_bound(tmp_path: Path):
    # On two channels at once both operations take less than one after the other.
    for name in ("pe_dma", "pe_fetch_store"):
        records = open_run(write_run(tmp_path / name, [two_of_one(name)], 90))
        assert loads(records)["transfer engine"][0].busy_ps == 90
        bound = run_bound(records)
        assert (bound.resource, bound.bound_ps, bound.is_of_path) == (None, 40, True)


def test_a_run_without_operations_has_no_busiest_resource(tmp_path: Path):
    records = open_run(write_run(tmp_path / "run", [tables(programs=[program(0, 0, 0)])], 0))
    assert (loads(records), busiest(loads(records)), run_bound(records).bound_ps) == ({}, None, 0)
