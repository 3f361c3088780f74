"""Launchers of sites on the hosts of a network: what they start, or the variables that they set."""

import shlex
import shutil
import stat
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.support.network import Host, Network
from tests.support.node_runs import (
    LIMIT_S,
    NODE,
    PYTHON,
    NodeRun,
    Program,
    Secret,
    next_port,
)
from tests.support.runs import ROOT


def torchrun(
    hosts: Sequence[Host], each: int, program: Program, secret: Secret, folder: Path
) -> NodeRun:
    """A run by an agent of torchrun on each host, with `each` workers; it waits for its end."""
    directory, port = folder / "run", str(next_port())
    agents = [
        host.start(
            *(PYTHON, "-m", "torch.distributed.run"),
            *("--nnodes", str(len(hosts)), "--nproc-per-node", str(each)),
            *("--node-rank", str(number), "--rdzv-backend", "static"),
            *("--master-addr", hosts[0].address, "--master-port", port),
            # Its own directories are not removed at the end.
            *("--log-dir", str(folder / "torchrun")),
            *("-m", *NODE[2:], *secret.words, "--out", str(directory), *program.command),
            variables={
                "OMP_NUM_THREADS": "1",
                # PyTorch leaves this directory in TMPDIR.
                "TORCHINDUCTOR_CACHE_DIR": str(folder / "inductor"),
            },
        )
        for number, host in enumerate(hosts)
    ]
    return NodeRun(tuple(agents), directory).wait()


def slurm(hosts: Sequence[Host], program: Program, secret: Secret, folder: Path) -> NodeRun:
    """A run whose process of rank r has the variables that srun gives it on `hosts[r]`."""
    nodes = list(dict.fromkeys(host.name for host in hosts))
    job = str(next_port())
    directory = folder / "run"
    common = {
        "SLURM_JOB_ID": job,
        "SLURM_STEP_ID": "0",
        "SLURM_NTASKS": str(len(hosts)),
        "SLURM_NNODES": str(len(nodes)),
        "SLURM_STEP_NUM_NODES": str(len(nodes)),
        # As Slurm abbreviates it.
        "SLURM_STEP_NODELIST": f"kb[{nodes[0][2:]}-{nodes[-1][2:]}]",
        "KERNBENCH_SECRET_FILE": str(secret.file),
    }
    processes = [
        host.start(
            *(*NODE, "--out", str(directory), *program.command),
            variables=common
            | {
                "SLURM_PROCID": str(rank),
                "SLURM_NODEID": str(nodes.index(host.name)),
                "SLURM_LOCALID": str(list(hosts[:rank]).count(host)),
            },
        )
        for rank, host in enumerate(hosts)
    ]
    return NodeRun(tuple(processes), directory).wait()


def mpirun(
    network: Network, slots: dict[Host, int], program: Program, secret: Secret, folder: Path
) -> subprocess.CompletedProcess[str]:
    """A run by mpirun on the host of the switch, which deals the ranks to the hosts in `slots` one
    by one. Its reports are in `folder / "run"`.
    """
    agent = _remote_shell(network, folder)
    places = ",".join(f"{host.address}:{count}" for host, count in slots.items())
    first = next(iter(slots))
    variables = {
        "KERNBENCH_SECRET_FILE": str(secret.file),
        "KERNBENCH_MASTER": f"{first.address}:{next_port()}",
    }
    words = (
        *("mpirun", "--allow-run-as-root", "-np", str(sum(slots.values())), "--host", places),
        *("--map-by", "node", "--bind-to", "none", "--mca", "plm_rsh_agent", str(agent)),
        *("--mca", "orte_tmpdir_base", str(folder)),
        *(word for name in variables for word in ("-x", name)),
        *(*NODE, "--out", str(folder / "run"), *program.command),
    )
    environment = first.environment() | {"TMPDIR": str(folder)} | variables
    return subprocess.run(
        network.switch.command(*words, only_network=True),
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=environment,
        timeout=LIMIT_S,
        check=False,
    )


def _remote_shell(network: Network, folder: Path) -> Path:
    """A program with the arguments of ssh, which enters a host of the network."""
    cases = list[str]()
    for host in network.hosts:
        inside = shlex.join(host.command("env", f"TMPDIR={host.tmp}", "sh", "-c"))
        cases.append(f'{host.address}) exec {inside} "$*" ;;')
    file = folder / "remote-shell"
    file.write_text("\n".join(("#!/bin/sh", 'host="$1"; shift', 'case "$host" in', *cases, "esac")))
    file.chmod(file.stat().st_mode | stat.S_IXUSR)
    return file


def has_open_mpi() -> bool:
    """Whether `mpirun` is that of Open MPI."""
    program = shutil.which("mpirun")
    return program is not None and "Open MPI" in subprocess.check_output(
        [program, "--version"], text=True
    )
