"""A model that is wrong on purpose: `validate` names the checks concerned, all of them and no others."""

from pathlib import Path

import pytest

from kernbench.cli.main import call
from kernbench.validate.check import Check
from kernbench.validate.plan import missed, parts, run
from runtime.model import graph
from runtime.model.schema import NodeKind
from runtime.model.topology import Topology
from sip_node.chip.context import ChipContext
from sip_node.chip.fabric.server import Server
from sip_node.chip.memory.hbm import PseudoChannels
from sip_node.chip.memory.storage import HbmController
from tests.support.topologies import default_text, variant_text

pytestmark = [pytest.mark.fidelity, pytest.mark.slow]


def checks(*prefixes: str, text: str = default_text()) -> list[Check]:
    """What the checks under `prefixes` say, all run in this process."""
    every = parts(1, full=False)
    return [
        check
        for prefix in prefixes
        for check in run(text, [part for part in every if part.may_match(prefix)], prefix, procs=1)
    ]


def missed_ids(found: list[Check]) -> set[str]:
    return {check.id for check in missed(found)}


class PairedChannels(PseudoChannels):
    """Puts two consecutive bursts on each channel: full rate for streams, another map for strides."""

    def serve(
        self, offset: int, nbytes: int, head_ps: int, tail_ps: int, writes: bool
    ) -> tuple[int, int]:
        shares = [0] * len(self.channels)
        for burst in range(
            offset // self._burst_bytes, (offset + nbytes - 1) // self._burst_bytes + 1
        ):
            begin = max(offset, burst * self._burst_bytes)
            end = min(offset + nbytes, (burst + 1) * self._burst_bytes)
            shares[burst // 2 % len(self.channels)] += end - begin
        return self._reserve(shares, head_ps, tail_ps, writes)


class PairedHbm(HbmController):
    def __init__(self, chip: ChipContext, node: int) -> None:
        super().__init__(chip, node)
        self.banks = PairedChannels("paired", chip.topology)
        self.port._serve = self.banks.serve


PAIRED = variant_text(impl={"hbm_ctrl": f"{__name__}:PairedHbm"})


def test_the_model_as_it_is_misses_nothing() -> None:
    assert not missed(checks("a.0.", "b.", "c.", "e.zero-load", "h."))


def test_a_wrong_map_of_channels_is_seen_by_the_strides_that_it_moves() -> None:
    assert missed_ids(checks("b.", "c.", "h.", text=PAIRED)) == {"h.stride.4", "h.stride.8"}


def test_a_router_that_takes_longer_is_seen_wherever_a_way_enters_the_mesh(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    right = graph._overheads_ns

    def slow_routers(topology: Topology) -> dict[NodeKind, float]:
        return right(topology) | {"router": topology.cube.noc.router_overhead_ns + 1}

    monkeypatch.setattr(graph, "_overheads_ns", slow_routers)
    found = checks("b.", "c.", "e.zero-load", "h.")
    # The own slice is behind the crossbar, not in the mesh; a steady rate has no latency in it.
    concerned = ("b.far.", "b.cube.", "c.sink.", "e.zero-load.")
    assert missed_ids(found) == {check.id for check in found if check.id.startswith(concerned)}


def test_a_link_with_too_little_bandwidth_is_seen_by_all_that_goes_through_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    right = Server.__init__

    def narrow_sram(server: Server, name: str, bw_gbs: float) -> None:
        right(server, name, bw_gbs / 4 if ".sram" in name else bw_gbs)

    monkeypatch.setattr(Server, "__init__", narrow_sram)
    found = checks("a.0.", "b.", "c.", "h.")
    through_sram = {check.id for check in found if "sram" in check.text.lower()}
    assert missed_ids(found) == through_sram
    assert {"a.0.05", "c.sink.2"} < through_sram


def test_a_miss_is_exit_code_1_with_the_checks_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "paired.yaml"
    file.write_text(PAIRED)
    assert call(["validate", "--topology", str(file), "--only", "h.", "--procs", "1"]) == 1
    assert "2 MISSED: h.stride.8 h.stride.4" in capsys.readouterr().out
