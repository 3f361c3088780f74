"""LPs started by hand exchange packets over TCP, with the result of every other run."""

import os
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TypeVar

import pytest
from msgspec.structs import replace

from coordinator.launch.rendezvous import Rendezvous
from coordinator.plan import Plan, ProgramSpec, load_config
from coordinator.report.aggregate import run_digest, sip_reports
from kernbench.benches.ccl_allreduce import ccl_allreduce
from runtime.wire.control import (
    Bye,
    Done,
    FromLp,
    Hello,
    Ready,
    RecordChunk,
    Start,
    Status,
    TraceChunk,
)
from runtime.wire.environment import COORDINATOR_PID, RUN_DIRECTORY
from tests.support.lps import peers_of
from tests.support.runs import ROOT, kernbench
from tests.support.topologies import variant_text
from tests.support.world import simulate

pytestmark = [pytest.mark.slow, pytest.mark.multiproc]

RUN_ID = "0123"
RECEIVE_S = 30.0
SIZES = {"algorithm": "ring", "min_bytes": 4096, "max_bytes": 4096}
CHIPS = {
    "sip__cube_mesh": {"w": 1, "h": 1},
    "cube__pe_layout__pe_per_corner": 1,
    "cube__pe_layout__corners": ["NW", "SE"],
}

Reply = TypeVar("Reply", bound=FromLp)


def test_channels_over_tcp_give_the_digest_of_ipc_and_of_one_process(tmp_path: Path):
    topology = tmp_path / "chips.yaml"
    topology.write_text(variant_text(**CHIPS))
    program = "kernbench.benches.ccl_allreduce:ccl_allreduce"
    plan = Plan(
        load_config(topology, None, 4),
        ProgramSpec("bench", "ccl-allreduce", program, SIZES),
        procs=3,
    )
    hellos, done = _run_by_hand(plan)
    assert all(hello.endpoint.startswith("tcp://127.0.0.1:") for hello in hellos.values())
    assert all(each.messages > 0 for each in done.values())
    words = [f"--{name.replace('_', '-')}={value}" for name, value in SIZES.items()]
    over_ipc = kernbench(
        tmp_path / "run", "--sips", "4", "--procs", "3", "--topology", str(topology), *words
    )
    assert over_ipc.code == 0, over_ipc.err
    alone = simulate(lambda rank: ccl_allreduce(rank, **SIZES), 4, topology=topology.read_text())
    digests = [run_digest(sip_reports(done)), over_ipc.report["digest"]]
    assert digests == [run_digest(alone.done.sips)] * 2


def _run_by_hand(plan: Plan) -> tuple[dict[int, Hello], dict[int, Done]]:
    """Start each LP as a user would from a shell, and coordinate the run without a directory."""
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in (COORDINATOR_PID, RUN_DIRECTORY)
    }
    with ExitStack() as stack:
        rendezvous = stack.enter_context(Rendezvous(["tcp://127.0.0.1:*"], RUN_ID, plan.procs))
        (endpoint,) = rendezvous.endpoints
        words = [sys.executable, "-m", "sip_node", "--connect", endpoint]
        lps = [
            subprocess.Popen(
                [*words, "--lp", str(lp)], env=environment, cwd=ROOT, stdin=subprocess.PIPE
            )
            for lp in range(plan.procs)
        ]
        for lp in lps:
            assert lp.stdin is not None
            lp.stdin.write(f"{RUN_ID}\n".encode())
            lp.stdin.close()
            stack.callback(lp.wait)
            stack.callback(lp.kill)
        hellos = _one_of_each(rendezvous, plan, Hello)
        endpoints = tuple(hellos[lp].endpoint for lp in range(plan.procs))
        for lp in hellos:
            rendezvous.send(
                lp, replace(peers_of(plan.sips_of_lp, plan.job), lp=lp, endpoints=endpoints)
            )
        _one_of_each(rendezvous, plan, Ready)
        rendezvous.broadcast(Start())
        done = _one_of_each(rendezvous, plan, Done)
        rendezvous.broadcast(Bye())
        assert [lp.wait(timeout=RECEIVE_S) for lp in lps] == [0] * plan.procs
        return hellos, done


def _one_of_each(rendezvous: Rendezvous, plan: Plan, kind: type[Reply]) -> dict[int, Reply]:
    """A message of type `kind` from every LP; reports of progress may come before it."""
    replies: dict[int, Reply] = {}
    while len(replies) < plan.procs:
        received = rendezvous.receive(RECEIVE_S)
        assert received is not None, f"no {kind.__name__} within {RECEIVE_S} s"
        lp, message = received
        if isinstance(message, kind):
            replies[lp] = message
        else:
            assert isinstance(message, Status | TraceChunk | RecordChunk), message
    return replies
