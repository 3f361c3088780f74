"""Launchers of sites start runs over hosts: the digest, the variables of programs, one line for
what cannot be.
"""

import json
import re
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from tests.support.faults import reasons_of_coordinator
from tests.support.launchers import has_open_mpi, mpirun, slurm, torchrun
from tests.support.network import Network
from tests.support.node_runs import (
    BENCH,
    SCRIPT,
    ByHand,
    Program,
    Secret,
    in_blocks,
    local_digest,
    round_robin,
)

pytestmark = [pytest.mark.slow, pytest.mark.multiproc, pytest.mark.nightly]

OF_TORCH = Program(4, ("examples/torch/moe.py",))
PRINTS_VARIABLES = """
import json, os, socket
names = ("RANK", "LOCAL_RANK", "GROUP_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_WORLD_SIZE")
variables = {name: int(os.environ[name]) for name in names}
print(json.dumps({"host": socket.gethostname(), **variables}))
"""


@pytest.mark.parametrize("program", [BENCH, SCRIPT])
def test_torchrun_on_two_hosts_gives_the_digest(
    network: Network, secret: Secret, tmp_path: Path, program: Program
):
    pytest.importorskip("torch")
    run = torchrun(network.hosts[:2], 2, program, secret, tmp_path)
    procs = None if program is SCRIPT else 1
    assert run.succeeded()["digest"] == local_digest(program, procs=procs)


@pytest.mark.timeout(600)
def test_torchrun_on_two_hosts_runs_a_program_of_pytorch(
    network: Network, secret: Secret, tmp_path: Path
):
    pytest.importorskip("torch")
    run = torchrun(network.hosts[:2], 2, OF_TORCH, secret, tmp_path)
    assert run.succeeded()["digest"] == local_digest(OF_TORCH, procs=None)


@pytest.mark.parametrize("placement", [in_blocks, round_robin])
def test_the_variables_of_slurm_give_the_digest(
    network: Network, secret: Secret, tmp_path: Path, placement: Any
):
    run = slurm(placement(network.hosts, 6), BENCH, secret, tmp_path)
    assert run.succeeded()["digest"] == local_digest(BENCH)


def test_mpirun_on_two_hosts_gives_the_digest(network: Network, secret: Secret, tmp_path: Path):
    if not has_open_mpi():
        pytest.skip("needs mpirun of Open MPI")
    slots = dict.fromkeys(network.hosts[:2], 2)
    done = mpirun(network, slots, BENCH, secret, tmp_path)
    assert done.returncode == 0, done.stderr
    report = json.loads((tmp_path / "run" / "run.json").read_text())
    assert report["digest"] == local_digest(BENCH)
    assert [lp["host"][:3] for lp in report["lps"]] == ["kb1", "kb1", "kb2", "kb2"]


@pytest.mark.parametrize("placement", [in_blocks, round_robin])
def test_the_variables_of_a_program_are_those_of_its_host(
    network: Network, secret: Secret, tmp_path: Path, placement: Any
):
    script = tmp_path / "variables.py"
    script.write_text(PRINTS_VARIABLES)
    run = ByHand(tmp_path, secret).start(placement(network.hosts, 5), Program(5, (str(script),)))
    run.succeeded()
    of_host = defaultdict[str, list[dict[str, int]]](list)
    for process in run.processes:
        (line,) = [each for each in process.out.splitlines() if each.startswith("{")]
        variables = json.loads(line)
        # A program prints where its process was started.
        assert variables.pop("host") == process.host.name
        of_host[process.host.name].append(variables)
    check_variables(of_host)


def check_variables(of_host: dict[str, list[dict[str, int]]]) -> None:
    """Ranks are consecutive on a host, and the hosts come in their order."""
    next_rank = 0
    for group, name in enumerate(sorted(of_host)):
        ranks = sorted(of_host[name], key=lambda variables: variables["RANK"])
        for local, variables in enumerate(ranks):
            assert variables == {
                "RANK": next_rank + local,
                "LOCAL_RANK": local,
                "GROUP_RANK": group,
                "WORLD_SIZE": 5,
                "LOCAL_WORLD_SIZE": len(ranks),
                "GROUP_WORLD_SIZE": 3,
            }
        next_rank += len(ranks)


def test_spawn_on_several_hosts_is_refused_in_one_line(
    network: Network, by_hand: ByHand, tmp_path: Path
):
    program = Program(2, ("examples/pytorch_spawn.py", "2"))
    run = by_hand.start(network.hosts[:2], program).wait()
    assert 0 not in run.codes, run.texts()
    (error,) = reasons_of_coordinator(run)
    # Either rank may be the first one.
    assert re.search(r"rank [01] raised RuntimeError", error)
    assert "it starts processes on one host, and this run has 2" in error
    (line,) = run.processes[1].err.splitlines()
    assert "on kb2" in line
    assert error.rpartition("spawn: ")[2] in line
