"""PHOLD in processes: together over the transports of a run, or apart, which is the ceiling."""

import tempfile
from collections.abc import Sequence
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from urllib.parse import urlsplit

from kernbench.measure.host_speed.phold_model import (
    LpResult,
    PholdResult,
    Workload,
    logical_process,
    parts_of,
)
from runtime.core.rng import fresh_run_id
from runtime.core.wallclock import cpu_s, now_s
from runtime.wire.codec import PeerDecoder
from sip_node.pdes.transport import Transport
from sip_node.pdes.transport_board import with_board
from sip_node.pdes.transport_zmq import ZmqTransport


def run_processes(workload: Workload, lps: int) -> PholdResult:
    """Run in `lps` processes of this host. The death of one raises `EOFError`."""
    return _run([workload] * lps, together=True)


def run_apart(workload: Workload, lps: int) -> PholdResult:
    """Run as much work in `lps` processes which exchange nothing, and wait for nothing."""
    return _run(parts_of(workload, lps), together=False)


def _run(workloads: Sequence[Workload], *, together: bool) -> PholdResult:
    lps = len(workloads)
    context = get_context("spawn")
    with tempfile.TemporaryDirectory(prefix="phold-") as directory:
        pipes = [context.Pipe() for _ in range(lps)]
        run_id = fresh_run_id()
        processes = [
            context.Process(
                target=_child,
                args=(workload, lp, lps if together else 1, directory, run_id, pipes[lp][1]),
                daemon=True,
            )
            for lp, workload in enumerate(workloads)
        ]
        try:
            for process, (_, theirs) in zip(processes, pipes, strict=True):
                process.start()
                # With the only write end in the child, its death ends the pipe.
                theirs.close()
            # All have bound their endpoints before the first one connects: ZeroMQ tries again after
            # 0.1 s. All are ready before the first one starts, so that start-up is not measured.
            for answer in ("connect", "start"):
                for ours, _ in pipes:
                    ours.recv()
                for ours, _ in pipes:
                    ours.send(answer)
            return PholdResult(tuple(ours.recv() for ours, _ in pipes))
        finally:
            for process, (ours, _) in zip(processes, pipes, strict=True):
                ours.close()
                process.join(timeout=5)
                process.terminate()


def _child(
    workload: Workload, lp: int, lps: int, directory: str, run_id: str, pipe: Connection
) -> None:
    endpoints = [f"ipc://{directory}/lp{peer}" for peer in range(lps)]
    bound = None if lps == 1 else ZmqTransport(run_id)
    if bound is not None:
        bound.bind(lp, endpoints[lp])
    pipe.send("bound")
    pipe.recv()
    transport = None if bound is None else _connected(bound, workload, lp, endpoints)
    # Of LPs that exchange nothing each is a run of its own.
    loop, model = logical_process(workload, 0 if lps == 1 else lp, lps, transport)
    pipe.send("ready")
    pipe.recv()
    begin_s, cpu_begin_s = now_s(), cpu_s()
    statistics = loop.run()
    wall_s, used_s = now_s() - begin_s, cpu_s() - cpu_begin_s
    pipe.send(LpResult(model.digests(), statistics, wall_s, used_s))
    if transport is not None:
        transport.close()


def _connected(
    bound: ZmqTransport, workload: Workload, lp: int, endpoints: Sequence[str]
) -> Transport:
    """The transport of an LP of a run of kernbench on one host."""
    lp_of = [workload.lp_of(entity, len(endpoints)) for entity in range(workload.entities)]
    peers = {peer: endpoint for peer, endpoint in enumerate(endpoints) if peer != lp}
    bound.connect(lp, peers, {}, PeerDecoder(lp, lp_of))
    lps, directory = len(endpoints), Path(urlsplit(endpoints[lp]).path).parent
    return with_board(bound, directory, lp, lps, peers, on_host=lps)
