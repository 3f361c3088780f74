"""Bounds of the transfer of a layer, from the topology file alone.

The heads that SIPs exchange are parts of an exchange
(`kernbench/oracle/theory/collectives/exchanges.py`): no transfer is faster than the bytes of the
busiest port. K and V are read once and written once from and to the HBM of all PEs.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from functools import cache
from itertools import pairwise

from kernbench.oracle.theory.bandwidths import own_memory_gbs
from kernbench.oracle.theory.collectives.exchanges import ExchangeBound, PartSizes
from kernbench.oracle.theory.paths.sip_grid import SipGrid
from kernbench.oracle.theory.roofline import bytes_ps
from kernbench.oracle.theory.topology_file import TopologyFile
from kernbench.studies.kv_transfer.rows import KvBounds, LinkLoad
from kernbench.studies.kv_transfer.sides import HeadsMove
from kernbench.studies.llama70b_layer.shape import ITEM_BYTES, LayerShape


def move_bytes(move: HeadsMove, shape: LayerShape) -> int:
    """Bytes of K and V of the heads that move."""
    return len(move.heads) * 2 * shape.context * shape.depth * ITEM_BYTES


def link_loads(
    file: TopologyFile, moves: Sequence[HeadsMove], shape: LayerShape
) -> tuple[LinkLoad, ...]:
    """The links that the heads of a layer pass, in order, with the pairs that share each."""
    grid, loads = SipGrid.of(file), defaultdict[tuple[int, int], Counter[tuple[int, int]]](Counter)
    for move in moves:
        ends = move.source, move.target
        for link in pairwise(grid.path(*ends)):
            loads[link][ends] += move_bytes(move, shape)
    return tuple(
        LinkLoad(source=here, target=there, nbytes=pairs.total(), pairs=tuple(sorted(pairs)))
        for (here, there), pairs in sorted(loads.items())
    )


def transfer_bounds(file: TopologyFile, moves: Sequence[HeadsMove], shape: LayerShape) -> KvBounds:
    """The bounds of one layer."""
    sips: int = file["system.sips.count"]
    rows, passed = [[0] * sips for _ in range(sips)], Counter[int]()
    for move in moves:
        rows[move.source][move.target] += len(move.heads) * 2 * shape.context
        nbytes = move_bytes(move, shape)
        passed.update({move.source: nbytes, move.target: nbytes})
    busiest = _exchanges(file.text).busiest(PartSizes(rows, shape.depth, ITEM_BYTES))
    alone_ps = float(bytes_ps(busiest.nbytes, file.number("ucie.bw_gbs")))
    memory_gbs = own_memory_gbs(file) * file.cubes * file.pes_per_cube
    return KvBounds(
        port=busiest.port,
        port_bytes=busiest.nbytes,
        link_ps=busiest.bound_ps,
        alpha_ps=busiest.bound_ps - alone_ps,
        memory_ps=float(bytes_ps(max(passed.values()), memory_gbs)),
    )


@cache
def _exchanges(topology: str) -> ExchangeBound:
    # It keeps the latencies of its routes, which take a second.
    return ExchangeBound(TopologyFile.of(topology))
