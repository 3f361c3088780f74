"""A component of SimPy processes, a store and a resource runs beside those of the model."""

from pathlib import Path

import pytest

from examples.simpy_component import ACCESS_PS, PORTS
from runtime.core.requests import PeDmaMsg
from runtime.device.rank.rank_state import running_rank
from tests.support.runs import kernbench
from tests.support.topologies import variant_text
from tests.support.world import simulate

LONE_PE = {
    "sip__cube_mesh": {"w": 1, "h": 1},
    "cube__pe_layout__corners": ["NW"],
    "cube__pe_layout__pe_per_corner": 1,
}
SMALL = ("--algorithm=ring", "--min-bytes=4096", "--max-bytes=4096")
QUEUED = {"impl": {"hbm_ctrl": "examples.simpy_component:QueuedHbm"}}


def write_ps(packets: int, **changes: object) -> int:
    """Time of a DMA write of packets of 4 KiB to the PE's own HBM slice."""

    def program(_rank: int) -> None:
        rank = running_rank()
        address = rank.addresses.pe_hbm_addr(0, 0, 0, 0)
        request = PeDmaMsg(0, 0, "write", address, packets * 4096)
        rank.device.wait(rank.device.submit([request], "a write"))

    world = simulate(program, 1, topology=variant_text(**LONE_PE | changes), data=False)
    [(_, record)] = world.of("pe_dma")
    return record.end_ps - record.start_ps


def test_a_request_holds_a_port_for_the_access_time() -> None:
    assert write_ps(1, **QUEUED) - write_ps(1) == ACCESS_PS


def test_the_ports_limit_the_rate_of_a_slice() -> None:
    # 2 x 4096 B / 64 ns = 128 GB/s, and a slice without them takes 204.8 GB/s.
    groups = 8
    took_ps = write_ps(2 + groups * PORTS, **QUEUED) - write_ps(2, **QUEUED)
    assert took_ps == groups * ACCESS_PS
    assert write_ps(2 + groups * PORTS) - write_ps(2) < took_ps


@pytest.mark.slow
@pytest.mark.multiproc
def test_the_result_is_the_same_for_every_number_of_processes(tmp_path: Path) -> None:
    topology = tmp_path / "queued.yaml"
    topology.write_text(variant_text(**LONE_PE | QUEUED))
    runs = [
        kernbench(
            tmp_path / f"procs{procs}", "--procs", str(procs), "--topology", str(topology), *SMALL
        )
        for procs in (1, 2)
    ]
    assert [run.code for run in runs] == [0, 0], runs[0].err + runs[1].err
    assert runs[0].report["digest"] == runs[1].report["digest"]
    assert runs[1].report["sync"]["messages"] > 0
