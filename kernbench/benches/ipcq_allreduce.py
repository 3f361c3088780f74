"""The bench `ipcq-allreduce`: an all-reduce which the kernels write themselves with `tl.send` and
`tl.recv`, without a collective of the library.

Every PE that takes part adds its shard to those of the PEs with the same coordinates in all SIPs:
a ring, reduce-scatter and then all-gather, in blocks whose messages fill the receive ring.
"""

from typing import Any

import numpy as np

from kernbench import BenchOutcome, Column, DPPolicy, Table, TableRow, bench, tl, torch
from kernbench.benches.flags import check_choice, check_least, checked_count
from kernbench.benches.tensor_parallel import FLOATS, all_reduce_bound_ps, timed
from runtime.ccl.config import CclConfig
from runtime.language.value import Array
from runtime.torch.tensors.tensor import Tensor

dist = torch.distributed
LABELS = tuple(Column(name) for name in ("cubes", "pes", "elements", "dtype"))
METRICS = (Column("algbw", "GB/s"), Column("busbw", "GB/s"), Column("bound", "ns"))
"""The bandwidths of nccl-tests, and the least time on the links between SIPs."""


def ring_all_reduce(x: tl.Pointer, numel: int, place: int, ranks: int, message: int) -> None:
    """Kernel: replace the `numel` elements of the own shard by their sums over all ranks.

    A block has one chunk of at most `message` elements for each rank. In step s of the
    reduce-scatter, place i of the ring sends its sum of chunk i - s to the next place and adds what
    it receives to chunk i - s - 1; after p - 1 steps it has the whole sum of chunk i + 1.
    """
    pe = tl.program_id(1) * tl.num_programs(0) + tl.program_id(0)
    shard = x + pe * numel
    for start in range(0, numel, message * ranks):
        count = min(message * ranks, numel - start)
        bounds = [(each * count // ranks, (each + 1) * count // ranks) for each in range(ranks)]
        with tl.scratch():
            block = tl.load(shard + start, count)
            chunks = [block[begin:end] for begin, end in bounds]
            for step in range(2 * (ranks - 1)):
                # In the second half the complete sums go round, and replace.
                _send(chunks[(place - step) % ranks])
                into = (place - step - 1) % ranks
                chunks[into] = _received(chunks[into], adds=step < ranks - 1)
            for (begin, _), chunk in zip(bounds, chunks, strict=True):
                if chunk.numel:
                    tl.store(shard + start + begin, chunk)


def _send(chunk: tl.Value) -> None:
    # Chunks of small blocks may be empty.
    if chunk.numel:
        tl.send("global_E", chunk)


def _received(chunk: tl.Value, *, adds: bool) -> tl.Value:
    if not chunk.numel:
        return chunk
    received = tl.recv("global_W", chunk.shape, chunk.dtype)
    return chunk + received if adds else received


def check_flags(_ccl: CclConfig, *, dtype: str, **sizes: Any) -> None:
    """Raise `UsageError` for wrong flags, before a process starts."""
    check_choice("dtype", dtype, FLOATS)
    check_least(0, warmup=sizes.pop("warmup"))
    check_least(1, elements=sizes["elements"])


@bench(
    "ipcq-allreduce",
    "an all-reduce over all SIPs which kernels write themselves with send and receive, checked",
    check_flags,
    elements="elements for each PE",
    dtype=f"element type: {', '.join(FLOATS)}",
    cubes="cubes of a SIP that take part; 0: all",
    pes="PEs of each of these cubes; 0: all",
    warmup="all-reduces before the timed one; the first one also maps the tensor",
)
def ipcq_allreduce(
    rank: int,
    *,
    elements: int = 4096,
    dtype: str = "float32",
    cubes: int = 1,
    pes: int = 0,
    warmup: int = 1,
) -> BenchOutcome:
    """Every PE of every rank has numbers of its own; each shard is one check."""
    properties, element = torch.ahbm.get_device_properties(), FLOATS[dtype]
    cubes = checked_count("cubes", cubes, properties.cubes, "a SIP")
    pes = checked_count("pes", pes, properties.pes_per_cube, "a cube")
    torch.ahbm.set_device(rank)
    # The queues of this algorithm join the PEs with equal coordinates to rings.
    dist.init_process_group("ahbm", algorithm="ring")
    ranks, shards = dist.get_world_size(), cubes * pes
    x = torch.empty(
        (shards, elements),
        dtype=element,
        dp=DPPolicy(cube="row_wise", pe="row_wise", num_cubes=cubes, num_pes=pes),
    )
    message = _message_bytes(properties.kernel_scratch_bytes_per_pe, ranks) // element.itemsize

    # The ring follows the links between SIPs, which need not be in the order of the ranks.
    place = dist.get_order().index(rank)
    times_ps = list[int]()
    for _ in range(warmup + 1):
        x.copy_(_numbers(rank, shards, elements))
        times_ps.append(timed(lambda: _all_reduce(x, elements, place, ranks, message), 0)[1])
    time_ps = times_ps[-1]
    expected = sum(_numbers(each, shards, elements) for each in range(ranks))
    wrong = int(np.count_nonzero(np.any(x.numpy() != expected, axis=1)))
    dist.destroy_process_group()
    bound_ps = all_reduce_bound_ps(shards * elements, element, ranks, cubes, pes)
    algbw_gbs = x.nbytes * 1000 / time_ps
    values = (algbw_gbs, algbw_gbs * 2 * (ranks - 1) / ranks, bound_ps / 1000)
    table = Table(LABELS, METRICS, (TableRow((cubes, pes, elements, dtype), time_ps, values),))
    if not torch.ahbm.has_data():
        return BenchOutcome("ipcq_allreduce", 0, 0, unchecked=shards, table=table)
    return BenchOutcome("ipcq_allreduce", shards - wrong, wrong, table=table)


def _all_reduce(x: Tensor, elements: int, place: int, ranks: int, message: int) -> Tensor:
    torch.launch("ring_all_reduce", ring_all_reduce, x, elements, place, ranks, message)
    return x


def _message_bytes(scratch_bytes: int, ranks: int) -> int:
    """A full receive ring, if the scratch holds the block and what it receives and adds: p chunks
    of the block, p - 1 received ones, p - 1 sums, p - 1 complete ones.
    """
    algorithm = dist.get_algorithm()
    at_most = scratch_bytes // (4 * ranks) // algorithm.slot_size * algorithm.slot_size
    return max(min(algorithm.n_slots * algorithm.slot_size, at_most), algorithm.slot_size)


def _numbers(rank: int, shards: int, elements: int) -> Array:
    """Integers so small that their sums over 64 ranks are exact in every type (bfloat16: 256)."""
    numbers = np.arange(shards * elements).reshape(shards, elements) + rank
    return (numbers % 4).astype(np.float32)
