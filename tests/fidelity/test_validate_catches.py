"""A wrong model fails exactly the checks concerned: all of them, and no others."""

from pathlib import Path

import pytest

from kernbench.cli.main import call
from runtime.model import graph
from runtime.model.schema.topology_schema import NodeKind
from runtime.model.topology import Topology
from sip_node.chip.fabric.server import Server
from sip_node.chip.host.io_cpu import IoCpu
from sip_node.chip.memory.hbm import PseudoChannels
from sip_node.chip.memory.memory_channels import MemoryChannels
from sip_node.chip.memory.storage import HbmController
from tests.fidelity.chosen_checks import checks, missed_ids
from tests.support.topologies import variant_text

pytestmark = [pytest.mark.fidelity, pytest.mark.slow]


class PairedChannels(PseudoChannels):
    """Two consecutive bursts on each channel: full rate for streams, another map for strides."""

    def shares(self, offset: int, nbytes: int) -> list[int]:
        shares = [0] * len(self.channels)
        for burst in range(
            offset // self.burst_bytes, (offset + nbytes - 1) // self.burst_bytes + 1
        ):
            begin = max(offset, burst * self.burst_bytes)
            end = min(offset + nbytes, (burst + 1) * self.burst_bytes)
            shares[burst // 2 % len(self.channels)] += end - begin
        return shares


class PairedHbm(HbmController):
    def memory_channels(self, name: str, topology: Topology) -> MemoryChannels:
        return PairedChannels(name, topology)


class LateIoCpu(IoCpu):
    """Releases a command a picosecond after the commands that it waited for are complete."""

    def _complete(self, tag: int) -> None:
        self._engine.at(self._engine.now_ps + 1, super()._complete, tag)


LATE = variant_text(impl={"io_cpu": f"{__name__}:LateIoCpu"})
PAIRED = variant_text(impl={"hbm_ctrl": f"{__name__}:PairedHbm"})


def test_the_correct_model_fails_no_check() -> None:
    assert not missed_ids(checks("a.0.", "b.", "c.", "e.zero-load", "h."))


@pytest.mark.nightly
def test_a_release_that_is_late_by_a_picosecond_fails_the_launches_that_wait_for_others() -> None:
    # The host-bound launches find no other before them, and neither does the copy.
    assert missed_ids(checks("a.0.00", "l.0.", text=LATE)) == {
        "l.0.stream.first",
        "l.0.stream.last",
        "l.0.beside",
    }


@pytest.mark.nightly
def test_a_wrong_map_of_channels_fails_the_strides_which_it_changes() -> None:
    results = checks("b.", "c.", "h.", text=PAIRED)
    # The wrong controller has no banks, also where the file names them.
    without_banks = {check.id for check in results if check.id.startswith("h.banks.")}
    strides = {"h.stride.4", "h.stride.8", "h.turns.idle", "h.turns.both"}
    assert missed_ids(results) == strides | without_banks


def test_a_slow_router_fails_all_checks_of_routes_through_the_mesh(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    right = graph._overheads_ns

    def slow_routers(topology: Topology) -> dict[NodeKind, float]:
        return right(topology) | {"router": topology.cube.noc.router_overhead_ns + 1}

    monkeypatch.setattr(graph, "_overheads_ns", slow_routers)
    results = checks("b.", "c.", "e.zero-load", "h.")
    # The own slice is behind the crossbar, not in the mesh; a steady rate contains no latency.
    concerned = ("b.far.", "b.cube.", "c.sink.", "e.zero-load.", "c.kernels.load-")
    expected = {check.id for check in results if check.id.startswith(concerned)}
    # PE 0 reads its own slice, and the others meet it over the mesh.
    expected |= {f"h.turns.{each}.{pe}" for each in ("equal", "fifo") for pe in (1, 2, 3)}
    expected |= {"h.turns.short", "h.turns.idle", "h.turns.both"}
    expected |= {"h.penalty.turn", "h.penalty.run"}
    expected |= {f"c.kernels.{each}-next-cube.1" for each in ("dma-load", "dma-store", "ipcq")}
    assert missed_ids(results) == expected - {"c.kernels.load-own-slice.1"}


def test_a_narrow_link_fails_all_checks_of_transfers_over_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    right = Server.__init__

    def narrow_sram(server: Server, name: str, bw_gbs: float) -> None:
        right(server, name, bw_gbs / 4 if ".sram" in name else bw_gbs)

    monkeypatch.setattr(Server, "__init__", narrow_sram)
    results = checks("a.0.", "b.", "c.", "h.")
    through_sram = {check.id for check in results if "sram" in check.text.lower()}
    assert missed_ids(results) == through_sram
    assert {"a.0.05", "c.sink.2"} < through_sram


def test_a_failed_check_gives_exit_code_1_and_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "paired.yaml"
    file.write_text(PAIRED)
    assert call(["validate", "--topology", str(file), "--only", "h.s", "--procs", "1"]) == 1
    assert "2 MISSED: h.stride.8 h.stride.4" in capsys.readouterr().out
