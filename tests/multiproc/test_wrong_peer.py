"""An LP that receives what no LP may send ends the run, and the error names the sender."""

import pytest

from coordinator.plan import Plan, ProgramSpec, load_config
from coordinator.session import Session
from runtime.core.errors import ProtocolError
from tests.support.sessions import Recorder, fake_launcher, is_running

pytestmark = [pytest.mark.slow, pytest.mark.multiproc]


@pytest.mark.parametrize(
    ("behaviour", "problem"),
    [
        ("loses", "content 3 from LP 1 to LP 0 where 2 is due: content 2 was lost"),
        ("doubles", "content 2 from LP 1 to LP 0 where 3 is due: it came a second time"),
    ],
)
def test_a_content_that_is_lost_or_sent_twice_ends_the_run_with_its_number(
    behaviour: str, problem: str
):
    error, pids = run_to_its_error("real", behaviour)
    assert str(error) == f"protocol error from LP 1: {problem} (received by LP 0)"
    assert not any(is_running(pid) for pid in pids)


def test_the_sender_of_a_wrong_packet_is_named_and_its_receiver_only_mentioned():
    error, pids = run_to_its_error("real", "sends_a_wrong_packet")
    assert str(error) == (
        "protocol error from LP 1: message 0 of a frame: "
        "SIP 200 in a run with 2 SIPs (received by LP 0)"
    )
    assert not any(is_running(pid) for pid in pids)


def run_to_its_error(*behaviours: str) -> tuple[ProtocolError, tuple[int, ...]]:
    """The error of a run with two LPs, and the processes of the LPs."""
    program = "kernbench.benches.ccl_allreduce:ccl_allreduce"
    arguments = {"algorithm": "ring", "min_bytes": 4096, "max_bytes": 4096}
    recorder = Recorder()
    plan = Plan(
        load_config(None, None, 2), ProgramSpec("bench", "ccl", program, arguments), procs=2
    )
    error = Session(plan, fake_launcher(*behaviours), recorder).run().error
    assert isinstance(error, ProtocolError)
    return error, recorder.pids
