"""Changes of a number of the topology file, and the time that they predict."""

from pathlib import Path

import pytest

from kernbench.explain.records import RecordedRun, open_run
from kernbench.explain.why.path import critical_path
from kernbench.explain.why.what_if import (
    FACTORS,
    Predictor,
    changed_topology,
    parse_change,
)
from runtime.core.errors import UsageError
from runtime.model.addresses import AddressMap
from runtime.model.keys import keys_of_group
from runtime.model.schema.meanings import KeyGroup
from tests.support.hand_made_runs import one_kernel
from tests.support.run_tables import command, op, program, step, tables, write_run


@pytest.fixture
def records(tmp_path: Path) -> RecordedRun:
    return open_run(write_run(tmp_path / "run", [one_kernel()], 1000))


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("ucie.bw_gbs=256", 256.0),
        ("ucie.bw_gbs=x2", 256.0),
        ("ucie.overhead_ns=x0.5", 4.0),
        ("hbm.num_pcs=4", 4),
        ("hbm.num_pcs=x2", 16),
    ],
)
def test_a_number_has_a_value_or_a_factor(records: RecordedRun, text: str, after: float):
    change = parse_change(records, text)
    assert (change.after, type(change.after)) == (after, type(after))
    section, name = change.key.split(".")
    assert changed_topology(records, change).values()[section][name] == after


def test_every_class_has_a_factor_that_makes_it_twice_as_fast():
    keys = keys_of_group(KeyGroup.WHAT_IF)
    assert len(keys) == 17
    assert {key.unit for key in keys} == set(FACTORS)
    assert FACTORS == {"ns": "x0.5", "GB/s": "x2", "GHz": "x2"}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("ucie.bw_gbs", "expected KEY=NUMBER or KEY=xFACTOR"),
        ("ucie.bw_gb=2", "no key of .*topology.yaml; did you mean 'ucie.bw_gbs'"),
        ("=2", "expected KEY=NUMBER or KEY=xFACTOR"),
        ("ucie=2", "a section, not a number; its first number is ucie.overhead_ns"),
        ("hbm.model.x=2", "no key of .*topology.yaml"),
        ("system.sips.count=4", "with another number it is another run"),
        ("hbm.model=2", "its value is 'channels', not a number"),
        ("host.copy_overhead_ns=2", "its value is None, not a number"),
        ("ucie.bw_gbs=fast", "expected a number, or a factor as in x2, got 'fast'"),
        ("ucie.bw_gbs=", "expected a number, or a factor as in x2, got ''"),
        ("ucie.bw_gbs=nan", "expected a number, or a factor as in x2, got 'nan'"),
    ],
)
def test_a_wrong_change_is_an_error(records: RecordedRun, text: str, problem: str):
    with pytest.raises(UsageError, match=problem):
        parse_change(records, text)


@pytest.mark.parametrize("text", ["ucie.bw_gbs=-1", "ucie.bw_gbs=0", "hbm.num_pcs=1.5"])
def test_a_value_that_the_machine_refuses_is_an_error(records: RecordedRun, text: str):
    key = text.partition("=")[0]
    with pytest.raises(UsageError, match=rf"why: --what-if {key}=.*{key}"):
        changed_topology(records, parse_change(records, text))


def a_load_of_a_page(tmp_path: Path) -> RecordedRun:
    """A kernel that loads 4,096 B of its own HBM slice, in the time of `probe`: 78,063 ps."""
    topology = open_run(write_run(tmp_path / "empty", [tables()], 0)).topology
    address = AddressMap(topology).pe_hbm_addr(0, 0, 0, 0)
    pe = {"cube": 0, "pe": 0}
    loaded = op("pe_dma", "load", 4_000, 82_063, nbytes=4096, read_address=address, step=1, **pe)
    sip = tables(
        ops=[loaded],
        programs=[program(1, 0, 82_063, command=0, **pe), program(0, 0, 82_063)],
        steps=[
            step(1, "load", 0, 82_063, step=1, issued_ps=4_000, released_by=0),
            step(0, "synchronize", 0, 82_063, released_by=0),
        ],
        commands=[command(0, "KernelLaunchMsg", 0, 0, -1)],
    )
    return open_run(write_run(tmp_path / "page", [sip], 82_063))


@pytest.mark.parametrize(
    ("text", "predicted_ps"),
    [
        ("cube.hbm_ctrl.latency_ns=26", -26_000),
        ("pe.dma.overhead_ns=5", 3_000),
        # CPU, scheduler and MMU issue a load: 2 + 1 + 1 ns.
        ("pe.cpu.overhead_ns=x0.5", -1_000),
        ("pe.mmu.overhead_ns=x0", -1_000),
        # 4,096 B at 204.8 GB/s, 20 ns, now at 102.4.
        ("hbm.pc_bw_gbs=x0.5", 20_000),
        ("ucie.bw_gbs=x2", 0),
    ],
)
def test_a_load_changes_by_what_its_closed_form_changes(
    tmp_path: Path, text: str, predicted_ps: int
):
    records = a_load_of_a_page(tmp_path)
    predictor = Predictor(records, critical_path(records))
    assert predictor.predict(parse_change(records, text)).predicted_ps == predicted_ps


def test_the_classes_that_save_most_come_first(tmp_path: Path):
    records = a_load_of_a_page(tmp_path)
    found = Predictor(records, critical_path(records)).classes(2)
    assert [each.change.key for each in found] == ["cube.hbm_ctrl.latency_ns", "hbm.pc_bw_gbs"]
    assert [each.predicted_ps for each in found] == [-26_000, -4_000]
