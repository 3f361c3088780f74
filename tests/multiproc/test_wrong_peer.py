"""An LP that receives what no LP may send ends the run, and the error names the sender."""

import pytest

from coordinator.plan import Plan, ProgramSpec, load_config
from coordinator.session import Session
from runtime.core.errors import ProtocolError
from tests.support.sessions import Recorder, fake_launcher, is_running

pytestmark = [pytest.mark.slow, pytest.mark.multiproc]


def test_the_sender_of_a_wrong_packet_is_named_and_its_receiver_only_mentioned():
    program = "kernbench.benches.ccl_allreduce:ccl_allreduce"
    arguments = {"algorithm": "ring", "min_bytes": 4096, "max_bytes": 4096}
    recorder = Recorder()
    plan = Plan(
        load_config(None, None, 2), ProgramSpec("bench", "ccl", program, arguments), procs=2
    )
    error = Session(plan, fake_launcher("real", "sends_a_wrong_packet"), recorder).run().error
    assert isinstance(error, ProtocolError)
    assert str(error) == (
        "protocol error from LP 1: message 0 of a frame: "
        "SIP 200 in a run with 2 SIPs (received by LP 0)"
    )
    assert not any(is_running(pid) for pid in recorder.pids)
