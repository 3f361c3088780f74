"""Rank, number and run of a process follow from the variables of its launcher."""

import pytest

from kernbench.cli.launchers.place import Place, first_host, place_of, slurm_master
from runtime.core.errors import UsageError

TORCHRUN = {
    "RANK": "5",
    "WORLD_SIZE": "8",
    "LOCAL_WORLD_SIZE": "4",
    "TORCHELASTIC_RUN_ID": "job",
    "MASTER_ADDR": "node1",
    "MASTER_PORT": "29500",
}
OPEN_MPI = {
    "OMPI_COMM_WORLD_RANK": "1",
    "OMPI_COMM_WORLD_SIZE": "2",
    "OMPI_COMM_WORLD_LOCAL_SIZE": "2",
    "PMIX_NAMESPACE": "prterun-node1-17@1",
}
SLURM = {
    "SLURM_PROCID": "3",
    "SLURM_NTASKS": "4",
    "SLURM_JOB_ID": "4711",
    "SLURM_STEP_ID": "2",
    "SLURM_STEP_NUM_NODES": "2",
    "SLURM_STEP_NODELIST": "gpu[07-09,12],login",
}


def test_each_launcher_gives_rank_and_number():
    assert place_of(TORCHRUN, None, None) == Place("torchrun", 5, 8, "job\nnode1\n29500", 4)
    assert place_of(OPEN_MPI, None, None) == Place("Open MPI", 1, 2, "\nprterun-node1-17@1", 2)
    assert place_of({"PMI_RANK": "0", "PMI_SIZE": "3"}, None, None) == Place("PMI", 0, 3, "\n")
    assert place_of(SLURM, None, None) == Place("Slurm", 3, 4, "4711\n2", 0)


def test_torchrun_under_slurm_and_options_come_first():
    assert place_of(SLURM | OPEN_MPI, None, None).launcher == "Open MPI"
    assert place_of(SLURM | TORCHRUN, None, None).launcher == "torchrun"
    assert place_of(TORCHRUN, 1, 2) == Place("by hand", 1, 2, "")


def test_a_program_with_a_rank_of_its_own_is_no_worker_of_torchrun():
    alone = {name: TORCHRUN[name] for name in ("RANK", "WORLD_SIZE")}
    with pytest.raises(UsageError, match="torchrun, srun or mpirun, or give --rank and --world"):
        place_of(alone, None, None)


@pytest.mark.parametrize(
    ("variables", "one_host"),
    [
        (TORCHRUN, False),
        (TORCHRUN | {"LOCAL_WORLD_SIZE": "8"}, True),
        (OPEN_MPI, True),
        (SLURM, False),
        (SLURM | {"SLURM_STEP_NUM_NODES": "1"}, True),
    ],
)
def test_a_launcher_shows_whether_all_processes_are_on_this_host(
    variables: dict[str, str], one_host: bool
):
    assert place_of(variables, None, None).has_one_host is one_host


@pytest.mark.parametrize(
    ("variables", "rank", "world_size", "line"),
    [
        ({}, 2, 2, "--rank is 2 and --world 2: ranks count from 0 to 1"),
        ({}, 1, None, "--rank and --world belong together"),
        ({"PMI_RANK": "x", "PMI_SIZE": "2"}, None, None, "PMI_RANK of PMI is 'x'"),
        ({"PMI_RANK": "1"}, None, None, "PMI_SIZE of PMI is '': expected a number"),
    ],
)
def test_an_impossible_place_is_one_line(
    variables: dict[str, str], rank: int | None, world_size: int | None, line: str
):
    with pytest.raises(UsageError, match=line):
        place_of(variables, rank, world_size)


@pytest.mark.parametrize(
    ("hosts", "first"),
    [
        ("login", "login"),
        ("a,b", "a"),
        ("gpu[007-009,12],login", "gpu007"),
        ("rack[2-3]node[01-16]", "rack2node01"),
        ("gpu[7]-a,x", "gpu7-a"),
    ],
)
def test_the_first_host_of_a_list_of_slurm(hosts: str, first: str):
    assert first_host(hosts) == first


def test_the_master_of_a_step_of_slurm_has_a_port_of_its_job():
    assert slurm_master(SLURM) == f"gpu07:{20_000 + 4711 + 2}"
    assert slurm_master({"SLURM_JOB_ID": "1"}) is None
    # Ports which Linux gives to connections begin at 32,768.
    assert slurm_master(SLURM | {"SLURM_JOB_ID": "99999"}) == "gpu07:20001"
