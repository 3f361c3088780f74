"""Transfers of the KV cache between SIPs of one cube with two PEs: simulated in half a second."""

from dataclasses import replace

from kernbench.benches.decoder_layer.shape import LLAMA_70B
from kernbench.oracle.theory.topology_file import TopologyFile
from kernbench.studies.kv_transfer.points import KvPoint
from kernbench.studies.kv_transfer.rows import RankOrder
from tests.support.topologies import variant_text

TWO_PES = TopologyFile.of(
    variant_text(
        sip__cube_mesh={"w": 1, "h": 1},
        cube__pe_layout__pe_per_corner=1,
        cube__pe_layout__corners=["NW", "SE"],
    )
)


def small_point(prefill: int, decode: int, layers: int) -> KvPoint:
    """64 tokens, one of them new, of a model with the heads of llama-70B and a narrow MLP."""
    return KvPoint(
        topology=TWO_PES.on_a_ring(prefill + decode).text,
        prefill=prefill,
        decode=decode,
        order=RankOrder.BLOCKS,
        shape=replace(LLAMA_70B, hidden=8, inner=64, tokens=1, context=64),
        layers=layers,
    )
