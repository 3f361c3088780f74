"""A decoder layer has one digest for every number of processes."""

import json
from pathlib import Path

import pytest

from kernbench.benches.attention.queues import with_hypercube
from kernbench.oracle.theory.topology_file import TopologyFile
from kernbench.studies.llama70b_layer.program import layer_program
from kernbench.studies.llama70b_layer.study import SCALED_CUBES, SCALED_DOWN
from kernbench.studies.llama70b_layer.weights import random_inputs, random_weights
from runtime.torch.multiprocessing import spawn
from tests.support.runs import ROOT

pytestmark = [pytest.mark.multiproc, pytest.mark.slow]


def _main(rank: int) -> None:
    data = random_weights(SCALED_DOWN), random_inputs(SCALED_DOWN)
    assert layer_program(SCALED_DOWN, 2, data)(rank).result is not None


def test_a_decode_has_one_digest_for_one_and_two_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    topology, ccl = tmp_path / "topology.yaml", tmp_path / "ccl.yaml"
    file = TopologyFile.of((ROOT / "topology.yaml").read_text("utf-8"))
    topology.write_text(file.with_values({"sip.cube_mesh": SCALED_CUBES}).text)
    ccl.write_text(with_hypercube((ROOT / "ccl.yaml").read_text("utf-8")))
    monkeypatch.setenv("KERNBENCH_TOPOLOGY", str(topology))
    monkeypatch.setenv("KERNBENCH_CCL", str(ccl))
    digests: list[str] = []
    for procs in (1, 2):
        monkeypatch.setenv("KERNBENCH_OUT", str(tmp_path / str(procs)))
        spawn(_main, nprocs=2, procs=procs)
        digests.append(json.loads((tmp_path / str(procs) / "run.json").read_text())["digest"])
    assert digests == digests[:1] * 2
