import os
import subprocess
import sys
from pathlib import Path

import pytest

from coordinator.launch.rendezvous import Rendezvous
from runtime.wire.control import Hello
from runtime.wire.environment import COORDINATOR_PID, RUN_DIRECTORY
from sip_node.lifeline import EXIT_ORPHANED
from tests.support.sessions import FAKE_LP, ROOT

pytestmark = [pytest.mark.slow, pytest.mark.multiproc]


def test_an_lp_that_joined_by_hand_ends_with_the_connection_to_its_coordinator(tmp_path: Path):
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in (COORDINATOR_PID, RUN_DIRECTORY)
    }
    endpoint = f"ipc://{tmp_path}/c.sock"
    words = ["hangs", "--connect", endpoint, "--run-id-fd", "0", "--lp", "0"]
    with Rendezvous([endpoint], "0123", 1) as rendezvous:
        process = subprocess.Popen(
            [sys.executable, str(FAKE_LP), *words],
            env=environment | {"PYTHONPATH": str(ROOT)},
            stdin=subprocess.PIPE,
        )
        assert process.stdin is not None
        process.stdin.write(b"0123\n")
        process.stdin.close()
        joined = rendezvous.receive(30.0)
    try:
        assert joined is not None
        assert isinstance(joined[1], Hello)
        assert process.wait(timeout=5.0) == EXIT_ORPHANED
    finally:
        process.kill()
        process.wait()
