"""One LP process from its Hello to its exit."""

import gc
import os
from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from runtime.core.errors import ConfigError, ConnectionLost, ProtocolError, RunAborted, UsageError
from runtime.core.imported_code import ImportRecorder
from runtime.wire.control import Failed, ModuleCode, Peers
from runtime.wire.environment import (
    AS_CUDA,
    TORCHRUN_RUN,
    full_traceback_requested,
    run_directory,
)
from runtime.wire.pieces import cut_text
from sip_node.busy_report import busy_reports
from sip_node.chip.failure import ProgramRaised
from sip_node.control import Control
from sip_node.node import LpNode
from sip_node.pdes.transport import Transport
from sip_node.pdes.transport_board import with_board
from sip_node.pdes.transport_zmq import ZmqTransport
from sip_node.programs.clock_warning import watch_clocks
from sip_node.programs.rank_environment import provide_variables
from sip_node.programs.user_program import Function, ProgramExited, Programs
from sip_node.reporter import Reporter
from sip_node.user_traceback import error_text, user_traceback


def main(
    control_endpoint: str,
    run_id: str,
    lp: int,
    recorder: ImportRecorder,
    function: Function | None = None,
    args: tuple[object, ...] = (),
) -> int:
    """Be LP `lp` of a run; returns the exit code.

    The coordinator receives a report for every way to end, and the code that `recorder` finds.
    """
    # Runs without the collector are faster. The result does not depend on it.
    gc.disable()
    control = Control(control_endpoint, run_id, lp)
    try:
        _run(control, run_id, lp, recorder, function, args)
    except RunAborted:
        return 1
    finally:
        control.close()
        # Python collects once more when it exits, among a million objects of the chips that the
        # exit of the process frees anyway.
        gc.freeze()
    return 0


def _run(
    control: Control,
    run_id: str,
    lp: int,
    recorder: ImportRecorder,
    function: Function | None,
    args: tuple[object, ...],
) -> None:
    directory = run_directory()
    channels: Transport
    channels = transport = ZmqTransport(run_id, control.socket)
    node: LpNode | None = None
    full = False
    try:
        full = full_traceback_requested()
        # Without a directory of the run there is no place for the files of ipc.
        endpoint = ""
        if directory is None:
            endpoint = transport.listen("127.0.0.1")
        else:
            transport.bind(lp, _ipc(directory, lp))
        peers = control.hello(endpoint, _news(recorder))
        programs = Programs(peers.job, function, args, recorder.record)

        def reach(others: Sequence[int]) -> Transport:
            nonlocal channels
            channels = _with_board(transport, directory, peers, others)
            return channels

        node = LpNode(peers, programs, reach, Reporter(control, lp))
        ranks = tuple(sip for sip in peers.sips_of_lp[lp] if sip < node.world_size)
        provide_variables(ranks, node.world_size, script=peers.job.is_script)
        # What a rank starts takes no part in the run.
        os.environ.pop(TORCHRUN_RUN, None)
        if peers.job.as_cuda:
            os.environ[AS_CUDA] = "1"
        watch_clocks(len(ranks))
        # The rules of the decoder follow from the topology, so the node is built first. Peers send
        # nothing before all LPs are ready.
        _connect(transport, directory, peers, node)
        _record_named_code(recorder, programs, node.ccl_modules)
        control.ready(node.config_hash, _news(recorder))
        control.wait_start()
        with busy_reports(node.stretch_s, node.activities, control.send_busy):
            done = node.run()
        refused, traffic = transport.refused(), transport.between_hosts()
        control.send(replace(done, code=_news(recorder), refused=refused, between_hosts=traffic))
        control.finish()
    # The coordinator has the reason; it only lacks the rest of the trace.
    except RunAborted:
        if node is not None:
            node.flush_logs()
        raise
    except ProgramRaised as raised:
        _fail(control, lp, node, raised.rank, raised.error, full=full)
    except Exception as error:  # noqa: BLE001 - every cause is reported
        _fail(control, lp, node, -1, error, full=full)
    finally:
        channels.close()


def _record_named_code(
    recorder: ImportRecorder, programs: Programs, ccl_modules: Sequence[str]
) -> None:
    """Record the code that the run names: it is imported after the start, and compared before."""
    if programs.file is not None:
        recorder.record(*programs.file)
    if programs.module is not None:
        recorder.find(programs.module)
    for module in ccl_modules:
        recorder.find(module, programs.folders)


def _ipc(directory: Path, lp: int) -> str:
    """The endpoint of an LP of this host."""
    return f"ipc://{directory}/lp{lp}"


def _with_board(
    transport: ZmqTransport, directory: Path | None, peers: Peers, others: Sequence[int]
) -> Transport:
    """`transport`, with a board for `others` unless they count as being on other hosts."""
    if directory is None or peers.job.delay_us is not None:
        return transport
    lps = len(peers.endpoints)
    return with_board(transport, directory, peers.lp, lps, others, on_host=lps)


def _connect(transport: ZmqTransport, directory: Path | None, peers: Peers, node: LpNode) -> None:
    near = {} if directory is None else {peer: _ipc(directory, peer) for peer in node.peers}
    far = {peer: peers.endpoints[peer] for peer in node.peers if peer not in near}
    if peers.job.delay_us is not None:
        transport.delay(peers.job.delay_us / 1e6)
    transport.connect(peers.lp, near, far, node.decoder())


def _news(recorder: ImportRecorder) -> tuple[ModuleCode, ...]:
    return tuple(
        ModuleCode(module=module, file=code.file, sha256=code.sha256)
        for module, code in recorder.news().items()
    )


def _fail(
    control: Control,
    lp: int,
    node: LpNode | None,
    rank: int,
    error: BaseException,
    *,
    full: bool,
) -> None:
    now_ps = 0
    if node is not None:
        now_ps = node.now_ps
        node.flush_logs()
    # A peer that broke the protocol is to blame, not this LP, which only received its message.
    blames_peer = isinstance(error, ProtocolError)
    exited = isinstance(error, ProgramExited)
    control.send(
        Failed(
            lp=lp,
            rank=rank,
            error=cut_text(type(error).__name__),
            message=cut_text(error.problem if blames_peer else error_text(error)),
            # An exit is no error of Python, and shows no traceback there either.
            traceback="" if exited else cut_text(user_traceback(error, full=full)),
            time_ps=now_ps,
            sender=error.peer if blames_peer else "",
            exit_code=error.code if exited else 0,
            # By type: a program may have a class of the same name.
            about_input=isinstance(error, UsageError | ConfigError),
            lost_peer=error.peer_lp if isinstance(error, ConnectionLost) else -1,
        )
    )
    control.finish()
