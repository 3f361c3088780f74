"""Hosts and links with jitter: one result for every partition, never earlier, and named by why."""

from collections.abc import Callable
from typing import Any

import pytest

from kernbench.explain.why.path import critical_path
from kernbench.explain.why.path_jitter import with_jitter
from kernbench.explain.why.piece import PieceKind
from kernbench.explain.why.what_if import NumberChange, Predictor
from runtime import torch
from runtime.core.requests import PeDmaMsg
from runtime.device.rank.rank_state import running_rank
from runtime.model.jitter import Jitter
from runtime.model.topology import parse_topology
from runtime.wire.environment import FOLD
from tests.property.test_chips_on_any_lps import DEALS, LONE_CUBE, SIPS, collectives, essence
from tests.support.lps import reports_of
from tests.support.runs_left import left
from tests.support.simulated_runs import recorded
from tests.support.topologies import variant_text
from tests.support.world import Simulation, simulate

BOUNDS = {"jitter__start_skew_ns": 400, "jitter__command_ns": 30, "jitter__crossing_ns": 50}
OVERRIDES = {
    "sip1.host": {"start_skew_ns": 2000},
    "sip2.ucie.s*": {"crossing_ns": 90},
}
FABRICS: tuple[dict[str, Any], ...] = (
    {},
    {"system__sips__fabric": "switch"},
    {"noc__flow_control": "credits"},
)


def late_text(**changes: Any) -> str:
    return variant_text(**(LONE_CUBE | BOUNDS | {"overrides": OVERRIDES} | changes))


@pytest.mark.parametrize("fabric", FABRICS, ids=["direct", "switch", "credits"])
def test_a_run_with_jitter_does_not_depend_on_the_partition(fabric: dict[str, Any]) -> None:
    program = collectives(300, "ring")
    alone = essence(reports_of(program, DEALS[0], late_text(**fabric), seed=0))
    for deal in DEALS[2], DEALS[4]:
        assert essence(reports_of(program, deal, late_text(**fabric), seed=7)) == alone
    other_seed = late_text(**fabric, jitter__seed=1)
    assert essence(reports_of(program, DEALS[0], other_seed, seed=0)) != alone


def all_reduces(count: int) -> Callable[[int], tuple[()]]:
    def program(_rank: int) -> tuple[()]:
        torch.distributed.init_process_group("ahbm", algorithm="ring")
        x = torch.ones((600,))
        for _ in range(count):
            torch.distributed.all_reduce(x)
        return ()

    return program


def test_repeated_collectives_with_jitter_are_those_of_a_run_that_repeats_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    of_hosts: dict[str, Any] = {"jitter__crossing_ns": 0, "overrides": {}}
    for changes in of_hosts, BOUNDS:
        runs = list[Simulation]()
        for fold in "01":
            monkeypatch.setenv(FOLD, fold)
            topology = late_text(system__sips__count=SIPS, **changes)
            runs.append(simulate(all_reduces(5), SIPS, topology=topology, data=False))
        assert left(runs[0]) == left(runs[1])


def test_a_program_starts_late_by_the_skew_of_its_host() -> None:
    def program(rank: int) -> int:
        return running_rank().device.now_ps

    text = late_text(system__sips__count=SIPS)
    topology = parse_topology(text, "late")
    bounds_ns = [2000 if sip == 1 else 400 for sip in range(SIPS)]
    started = [
        Jitter(topology, f"sip{sip}.host start", bound_ns).next_ps()
        for sip, bound_ns in enumerate(bounds_ns)
    ]
    assert simulate(program, SIPS, topology=text, data=False).returned == dict(enumerate(started))
    assert len(set(started)) == SIPS


def test_a_command_leaves_its_host_late_by_its_own_delay() -> None:
    def program(_rank: int) -> list[int]:
        state = running_rank()
        address = state.addresses.pe_hbm_addr(0, 0, 0, 0)
        times = list[int]()
        for _ in range(3):
            begun_ps = state.device.now_ps
            request = PeDmaMsg(0, 0, "write", address, 64)
            state.device.wait(state.device.submit([request], "a store"))
            times.append(state.device.now_ps - begun_ps)
        return times

    lone: dict[str, Any] = LONE_CUBE | {"system__sips__count": 1}
    on_time, late = (
        simulate(program, 1, topology=text, data=False).returned[0]
        for text in (variant_text(**lone), variant_text(**lone, jitter__command_ns=30))
    )
    delays = Jitter(parse_topology(variant_text(**lone), "late"), "sip0.host command", 30.0)
    assert [after - before for before, after in zip(on_time, late, strict=True)] == [
        delays.next_ps() for _ in range(3)
    ]


def test_why_names_the_jitter_of_the_path_and_predicts_a_run_without_it() -> None:
    texts = [variant_text(**LONE_CUBE, jitter__crossing_ns=bound_ns) for bound_ns in (100, 0)]
    late, on_time = (recorded(all_reduces(2), 2, topology=text, data=False) for text in texts)
    path = with_jitter(late, critical_path(late))
    assert sum(piece.length_ps for piece in path.pieces) == late.total_ps
    jitter_ps = sum(piece.length_ps for piece in path.pieces if piece.kind is PieceKind.JITTER)
    predicted = Predictor(late, path).predict(NumberChange("jitter.crossing_ns", 100, 0))
    assert predicted.predicted_ps == -jitter_ps
    assert jitter_ps == pytest.approx(late.total_ps - on_time.total_ps, rel=0.1)
    assert with_jitter(on_time, critical_path(on_time)) == critical_path(on_time)
