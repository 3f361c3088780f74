"""The LPs of a chip run in one thread: real nodes on scrambled transports, whose every interleaving
a seed brings back.
"""

from collections.abc import Callable, Sequence
from functools import partial

from msgspec.structs import replace

from runtime.ccl.config import load_ccl
from runtime.core.garbage_collection import collections_suspended
from runtime.model.topology import parse_topology
from runtime.wire.control import Job, Peers
from runtime.wire.frames import PeerContent
from runtime.wire.reports import DevicePrint, SipReport
from sip_node.node import LpNode
from sip_node.pdes.loop import LogicalProcess, LoopStatistics
from sip_node.pdes.transport import Transport
from sip_node.user_program import Programs
from tests.support.pdes_network import Tap, prompt, scrambled

ROUNDS = 200_000


class _NoObserver:
    def round(self, time_ps: int, loop: LogicalProcess, programs: LpNode) -> None:
        pass

    def trace(self, sip: int, records: bytes) -> None:
        pass

    def written(self, sip: int, data: bytes) -> None:
        pass

    def contents(self, sip: int, address: int, data: bytes) -> None:
        pass

    def printed(self, line: DevicePrint) -> None:
        pass


def reports_of(
    program: Callable[[int], object],
    sips_of_lp: Sequence[tuple[int, ...]],
    topology: str,
    *,
    seed: int,
    remote_dma: bool = False,
    data: bool = True,
) -> list[SipReport]:
    """Run `program(rank)` on SIPs dealt to LPs as given, to the end; the reports of all SIPs in
    their order. The LPs are on up to three hosts.
    """
    lps = len(sips_of_lp)
    hosts = [lp * (1 + seed % 3) // lps for lp in range(lps)]
    network = scrambled(lps, seed)
    nodes = _run(program, sips_of_lp, topology, network, remote_dma, data, hosts)
    return sorted(
        (report for node in nodes for report in node.run().sips), key=lambda report: report.sip
    )


def statistics_of(
    program: Callable[[int], object], sips_of_lp: Sequence[tuple[int, ...]], topology: str
) -> list[LoopStatistics]:
    """The counts of the LPs of such a run without data, in which they take turns without delays."""
    nodes = _run(program, sips_of_lp, topology, prompt(len(sips_of_lp)), False, False)
    return [node._loop.statistics for node in nodes]


def contents_between_hosts(
    program: Callable[[int], object], hosts: Sequence[int], topology: str
) -> list[PeerContent]:
    """Contents that LPs of different hosts send to each other in a run, with SIP n on LP n."""
    transports, next_turn = prompt(len(hosts))
    taps = [Tap(lp, transport) for lp, transport in enumerate(transports)]
    deal = [(sip,) for sip in range(len(hosts))]
    _run(program, deal, topology, (list(taps), next_turn), False, False, hosts)
    return [content for tap in taps for peer, content in tap.sent if hosts[peer] != hosts[tap.lp]]


def _run(
    program: Callable[[int], object],
    sips_of_lp: Sequence[tuple[int, ...]],
    topology: str,
    network: tuple[list[Transport], Callable[[], int]],
    remote_dma: bool,
    data: bool,
    hosts: Sequence[int] = (),
) -> list[LpNode]:
    sips = sum(len(own) for own in sips_of_lp)
    job = Job(
        topology=parse_topology(topology, "topology", sips).encoded(),
        ccl=load_ccl().file.encoded(),
        program="",
        kind="function",
        arguments={},
        argv=(),
        data=data,
        trace=True,
        jitter_seed=0,
        jitter_ms=0.0,
        remote_dma=remote_dma,
    )
    transports, next_turn = network
    peers = peers_of(sips_of_lp, job)
    if hosts:
        names = tuple(f"host{host}" for host in range(max(hosts) + 1))
        peers = replace(peers, hosts=tuple(hosts), host_names=names)
    nodes = [
        LpNode(
            replace(peers, lp=lp),
            Programs(job, program),
            partial(_reached, transport),
            _NoObserver(),
        )
        for lp, transport in enumerate(transports)
    ]
    with collections_suspended():
        _take_turns(nodes, next_turn)
    return nodes


def peers_of(sips_of_lp: Sequence[Sequence[int]], job: Job) -> Peers:
    """Message with the peers of LP 0 in a run on one host."""
    return Peers(
        lp=0,
        endpoints=("",) * len(sips_of_lp),
        hosts=(0,) * len(sips_of_lp),
        host_names=("",),
        sips_of_lp=tuple(map(tuple, sips_of_lp)),
        job=job,
    )


def _reached(transport: Transport, peers: Sequence[int]) -> Transport:
    assert peers
    return transport


def _take_turns(nodes: Sequence[LpNode], next_turn: Callable[[], int]) -> None:
    for _ in range(ROUNDS):
        if all(node._loop.ended for node in nodes):
            return
        node = nodes[next_turn()]
        if not node._loop.ended:
            node._loop.round()
    raise AssertionError(f"the run has not ended after {ROUNDS} rounds")
