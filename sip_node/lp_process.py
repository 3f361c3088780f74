"""An LP process, from its Hello to its exit."""

import gc
import os
from collections.abc import Sequence
from contextlib import nullcontext

from msgspec.structs import replace

from runtime.core.code.imported_code import ImportRecorder
from runtime.core.errors import ConfigError, ConnectionLost, ProtocolError, RunAborted, UsageError
from runtime.wire.control import Failed, ModuleCode, Peers
from runtime.wire.environment import AS_CUDA, TORCHRUN_RUN, full_traceback_requested
from runtime.wire.lp_name import lp_name
from runtime.wire.pieces import cut_text
from sip_node.busy_report import busy_reports, start_reports
from sip_node.chip.kernel import ProgramRaised
from sip_node.clock_warning import watch_clocks
from sip_node.control import JOIN_S, Control
from sip_node.lp_channels import Joining, LpChannels
from sip_node.node import LpNode
from sip_node.reporter import Reporter
from sip_node.user_program import (
    Function,
    ProgramExited,
    Programs,
    provide_variables,
    rank_place,
)
from sip_node.user_traceback import error_text, user_traceback


def main(
    joining: Joining,
    recorder: ImportRecorder,
    function: Function | None = None,
    args: tuple[object, ...] = (),
) -> int:
    """Be an LP of a run; returns the exit code.

    The coordinator receives a report for every way to end, and the code that `recorder` finds.
    """
    # Runs without the collector are faster. The result does not depend on it.
    gc.disable()
    join_s = None if joining.site is None else JOIN_S
    control = Control(
        joining.control_endpoint, joining.run_id, joining.lp, joining.ending, join_s=join_s
    )
    failed = True
    try:
        _run(control, joining, recorder, function, args)
        failed = False
    except RunAborted as abort:
        joining.ending.say(str(abort))
    finally:
        control.close()
        joining.ending.leave(failed=failed)
        # Python collects once more when it exits, among a million objects of the chips that the
        # exit of the process frees anyway.
        gc.freeze()
    return int(failed)


def _run(
    control: Control,
    joining: Joining,
    recorder: ImportRecorder,
    function: Function | None,
    args: tuple[object, ...],
) -> None:
    site, lp, full = joining.site, joining.lp, False
    channels: LpChannels | None = None
    node: LpNode | None = None
    try:
        full = full_traceback_requested()
        channels = LpChannels(joining, control.socket)
        host, command = (None, "") if site is None else (site.host, site.command)
        peers = control.hello(channels.endpoint, _news(recorder), host, command)
        lp = peers.lp
        with nullcontext() if site is None else start_reports(control.send_busy):
            programs = Programs(peers.job, function, args, recorder.record)
            node = LpNode(peers, programs, channels.reach(peers), Reporter(control, lp))
            _name_ranks(joining, peers, node)
            _prepare_environment(peers, node)
            # The rules of the decoder follow from the topology, so the node is built first. Peers
            # send nothing before all LPs are ready.
            channels.connect(node.decoder())
            _record_named_code(recorder, programs, node.ccl_modules)
            control.ready(node.config_hash, _news(recorder))
        control.wait_start()
        with busy_reports(node.stretch_s, node.activities, control.send_busy):
            done = node.run()
        control.send(channels.complete(replace(done, code=_news(recorder))))
        control.finish()
    # The coordinator has the reason; it only lacks the rest of the trace.
    except RunAborted:
        if node is not None:
            node.flush_logs()
        raise
    except ProgramRaised as raised:
        _fail(control, joining, lp, node, raised.error, rank=raised.rank, full=full)
    except Exception as error:  # noqa: BLE001 - every cause is reported
        _fail(control, joining, lp, node, error, rank=-1, full=full)
    finally:
        if channels is not None:
            channels.close()


def _name_ranks(joining: Joining, peers: Peers, node: LpNode) -> None:
    """A later line about the end of this process names its LP, ranks and simulated time."""
    joining.ending.now_ps = lambda: node.now_ps
    if joining.site is not None:
        name = lp_name(peers.lp, peers.sips_of_lp[peers.lp])
        joining.ending.name = f"{name} on {joining.site.name}"


def _prepare_environment(peers: Peers, node: LpNode) -> None:
    """Set the variables of the ranks of this process."""
    ranks = [sip for sip in peers.sips_of_lp[peers.lp] if sip < node.world_size]
    places = [rank_place(peers, rank, node.world_size) for rank in ranks]
    provide_variables(places, script=peers.job.is_script)
    # What a rank starts takes no part in the run.
    os.environ.pop(TORCHRUN_RUN, None)
    if peers.job.as_cuda:
        os.environ[AS_CUDA] = "1"
    watch_clocks(len(ranks))


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


def _news(recorder: ImportRecorder) -> tuple[ModuleCode, ...]:
    return tuple(
        ModuleCode(module=module, file=code.file, sha256=code.sha256)
        for module, code in recorder.news().items()
    )


def _fail(
    control: Control,
    joining: Joining,
    lp: int,
    node: LpNode | None,
    error: BaseException,
    *,
    rank: int,
    full: bool,
) -> None:
    now_ps = 0
    if node is not None:
        now_ps = node.now_ps
        node.flush_logs()
    # A peer that broke the protocol is to blame, not this LP, which only received its message.
    blames_peer = isinstance(error, ProtocolError)
    exited = isinstance(error, ProgramExited)
    text = cut_text(error.problem if blames_peer else error_text(error))
    control.send(
        Failed(
            lp=lp,
            rank=rank,
            error=cut_text(type(error).__name__),
            message=text,
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
    joining.ending.say(f"{type(error).__name__}: {text.partition(chr(10))[0]}")
    control.finish()
