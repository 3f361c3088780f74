"""Processes that are not of a run reach the sockets of its hosts: each is refused and named once
with its address, and the result stays.
"""

from pathlib import Path

import pytest

from kernbench.cli.launchers.meeting import MeetingOptions, meeting_of
from kernbench.cli.launchers.place import BY_HAND, Place
from runtime.core.wallclock import now_s, sleep_s
from tests.support.foreign_frames import FRAMES
from tests.support.network import Host, Network
from tests.support.node_runs import (
    LIMIT_S,
    PYTHON,
    ByHand,
    NodeRun,
    Program,
    in_blocks,
    local_digest,
)
from tests.support.strangers import KINDS, RUN_ID

pytestmark = [pytest.mark.slow, pytest.mark.multiproc, pytest.mark.nightly]

RANKS = 4
SOCKETS = ("the coordinator", *(f"LP {lp}" for lp in range(RANKS)))
REPLAY = "LP 1 has joined already"
WAITS_FOR_A_FILE = """
import sys, time
from pathlib import Path
from kernbench import torch

dist = torch.distributed
dist.init_process_group("ahbm")
x = torch.ones(256)
for step in range(10):
    dist.all_reduce(x, op=dist.ReduceOp.MAX)
    x.numpy()
    if step == 0:
        print("begun", flush=True)
        # The other ranks wait in the next all-reduce. No simulated time passes.
        while dist.get_rank() == 1 and not Path(sys.argv[1]).exists():
            time.sleep(0.01)
"""


@pytest.mark.parametrize("kind", KINDS)
def test_a_stranger_is_refused_and_named_once_and_the_digest_stays(
    network: Network, by_hand: ByHand, tmp_path: Path, kind: str
):
    script, file = tmp_path / "waits.py", tmp_path / "go"
    script.write_text(WAITS_FOR_A_FILE)
    program = Program(RANKS, (str(script), str(file)))
    run = by_hand.start(in_blocks(network.hosts[:2], RANKS), program)
    wait_until_begun(run)
    endpoints = endpoints_of(run, network.hosts[:2], replays=kind == REPLAY)
    stranger = network.hosts[2].start(
        *(PYTHON, "-m", "tests.support.strangers", kind, *endpoints),
        variables={RUN_ID: run_id_of(run, by_hand)},
    )
    code = stranger.wait(LIMIT_S)
    file.touch()
    assert code == 0, stranger.err
    report = run.succeeded()
    assert report["digest"] == local_digest(program, procs=None)
    check_strangers(run, kind)


def check_strangers(run: NodeRun, kind: str) -> None:
    """Every socket that the strangers have reached has refused each attempt for that reason."""
    sockets = SOCKETS[:1] if kind == REPLAY else SOCKETS
    attempts = len(FRAMES) if "CURVE" in kind or "key" in kind else 1
    report = run.report
    assert report["strangers"] == {socket: {kind: attempts} for socket in sockets}
    warnings = [line for line in run.processes[0].err.splitlines() if "warning" in line]
    for socket, warning in zip(sockets, warnings, strict=True):
        addresses = report["stranger_addresses"][socket].get(kind, [])
        assert f"{socket} refused {attempts} " in warning
        assert f"{attempts} x {kind}" in warning
        assert len(addresses) == 1, f"{socket}: {report['stranger_addresses']}"
        assert addresses[0].startswith("10.77.0.3"), addresses
        assert f"{attempts} x {kind} from {addresses[0]}" in warning


def endpoints_of(run: NodeRun, hosts: tuple[Host, ...], *, replays: bool) -> list[str]:
    """The endpoints which other hosts can reach: that of the coordinator, then those of the LPs."""
    found = [each for host in hosts for each in sorted(host.open_listeners())]
    assert run.master in found
    assert len(found) == 1 + RANKS
    found.sort(key=lambda each: each != run.master)
    return [f"tcp://{each}" for each in (found[:1] if replays else found)]


def run_id_of(run: NodeRun, by_hand: ByHand) -> str:
    """The id of the run, which its processes derive from the secret."""
    assert by_hand.secret is not None
    options = MeetingOptions(run.master, "10.77.0.3", by_hand.secret.file)
    return meeting_of(Place(BY_HAND, 1, RANKS, ""), options, {}, pytest.fail).run_id


def wait_until_begun(run: NodeRun) -> None:
    deadline_s = now_s() + LIMIT_S
    while not all("begun" in each.out for each in run.processes):
        assert now_s() < deadline_s, run.texts()
        assert run.codes == [None] * RANKS, run.texts()
        sleep_s(0.01)
