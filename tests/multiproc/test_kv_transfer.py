"""The transfer of the KV cache has one digest for every number of processes."""

import json
from pathlib import Path

import numpy as np
import pytest

from coordinator.report.aggregate import run_digest
from kernbench.studies.kv_transfer.study import kv_program, layer_elements, made_elements
from runtime.torch.multiprocessing import spawn
from tests.support.kv_points import small_point
from tests.support.world import simulate

pytestmark = [pytest.mark.multiproc, pytest.mark.slow]


def _main(rank: int) -> None:
    point = small_point(1, 2, layers=2)
    made = made_elements(point)
    outcome = kv_program(point, made)(rank)
    for move in point.moves:
        if move.target == rank:
            last = layer_elements(made[move.heads], 3)
            assert np.array_equal(outcome.beside.received[1, move.source], last)


@pytest.mark.nightly
def test_one_sip_to_two_has_one_digest_for_one_two_and_three_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = small_point(1, 2, layers=2).topology
    digests = [run_digest(simulate(_main, 3, topology=text).done.sips)]
    topology = tmp_path / "topology.yaml"
    topology.write_text(text)
    monkeypatch.setenv("KERNBENCH_TOPOLOGY", str(topology))
    for procs in (2, 3):
        monkeypatch.setenv("KERNBENCH_OUT", str(tmp_path / str(procs)))
        spawn(_main, nprocs=3, procs=procs)
        digests.append(json.loads((tmp_path / str(procs) / "run.json").read_text())["digest"])
    assert digests == digests[:1] * 3
