"""Ring attention has one digest for every number of processes."""

import json
from pathlib import Path

import pytest

from kernbench.oracle.theory.topology_file import TopologyFile
from kernbench.studies.parameter_study import TopologyText
from kernbench.studies.ring_attention.rows import Division, RingPoint, RingSizes, plan_points
from kernbench.studies.ring_attention.study import ring_program, ring_tensors
from runtime.torch.multiprocessing import spawn
from tests.support.runs import ROOT

pytestmark = [pytest.mark.multiproc, pytest.mark.slow]


def _point() -> RingPoint:
    text = (ROOT / "topology.yaml").read_text("utf-8")
    file = TopologyFile.of(text).with_values({"sip.cube_mesh": {"w": 1, "h": 1}})
    sizes = RingSizes(heads=2, depth=128, tokens=(256,), sips=(2,))
    found = plan_points(TopologyText("topology.yaml", file.text), sizes)
    return next(point for point in found if point.division is Division.ZIGZAG)


def _main(rank: int) -> None:
    point = _point()
    outcome = ring_program(point, ring_tensors(point))(rank)
    assert outcome.result is not None


def test_zigzag_has_one_digest_for_one_and_two_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    topology = tmp_path / "topology.yaml"
    topology.write_text(_point().topology)
    monkeypatch.setenv("KERNBENCH_TOPOLOGY", str(topology))
    digests: list[str] = []
    for procs in (1, 2):
        monkeypatch.setenv("KERNBENCH_OUT", str(tmp_path / str(procs)))
        spawn(_main, nprocs=2, procs=procs)
        digests.append(json.loads((tmp_path / str(procs) / "run.json").read_text())["digest"])
    assert digests == digests[:1] * 2
