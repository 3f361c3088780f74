"""Random programs on random hardware: all that a run reports, for the comparison of two cores.

The core is chosen when a process starts, so `python -m tests.support.random_programs SEED COUNT`
prints the reports of a range of seeds, a line each, with the core of its environment.
"""

import sys
from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any
from zlib import crc32

import numpy as np

from kernbench.benches.ccl_allreduce import ccl_allreduce
from kernbench.benches.gemm_single_pe import STAGINGS, gemm_single_pe
from kernbench.benches.ipcq_allreduce import ipcq_allreduce
from kernbench.benches.products import ACTIVATIONS, DTYPES, LAYOUTS
from kernbench.benches.qkv_gemm_multi_pe import qkv_gemm_multi_pe
from kernbench.benches.tp_attention_block import tp_attention_block
from kernbench.benches.va_offset_verify import va_offset_verify
from runtime import DPPolicy, tl, torch
from tests.support.random_overrides import with_random_overrides
from tests.support.topologies import variant_text
from tests.support.world import Simulation, simulate

Program = Callable[[int], object]


def _all_reduce(draw: Random) -> Program:
    nbytes = draw.choice((4, 252, 1024, 5000, 20_000))
    algorithm = draw.choice(("intercube", "ring", "tree", "hierarchical", "recursive_doubling"))
    return partial(
        ccl_allreduce,
        algorithm=algorithm,
        min_bytes=nbytes,
        max_bytes=nbytes,
        dtype=draw.choice(("float16", "float32", "int32")),
    )


def _own_all_reduce(draw: Random) -> Program:
    elements = draw.choice((1, 1000, 5000))
    return partial(ipcq_allreduce, elements=elements, dtype=draw.choice(("float16", "float32")))


def _product(draw: Random) -> Program:
    m, n, k = (draw.randint(1, 100) for _ in range(3))
    dtype = draw.choice(tuple(DTYPES))
    # Sums of int8 are integers, which have no other activation.
    activations = ("none", "relu") if dtype == "int8" else tuple(ACTIVATIONS)
    return partial(
        gemm_single_pe,
        m=m,
        n=n,
        k=k,
        dtype=dtype,
        staging=draw.choice(tuple(STAGINGS)),
        layout=draw.choice(LAYOUTS),
        bias=draw.random() < 0.5,
        activation=draw.choice(activations),
    )


def _products(draw: Random) -> Program:
    return partial(
        qkv_gemm_multi_pe, scale=128, seq=draw.randint(1, 40), layout=draw.choice(LAYOUTS)
    )


def _attention(draw: Random) -> Program:
    return partial(tp_attention_block, tokens=draw.randint(1, 20), width=96, heads=6)


def _addresses(draw: Random) -> Program:
    return partial(va_offset_verify, columns=draw.randint(20, 200))


def _vectors(draw: Random) -> Program:
    """A kernel on all PEs whose loads, functions and stores overlap."""
    rows, columns, stride = draw.randint(1, 6), draw.randint(1, 300), draw.randint(0, 3)
    names = [draw.choice(("exp", "relu", "abs", "sigmoid")) for _ in range(draw.randint(1, 3))]

    def kernel(x: tl.Pointer, y: tl.Pointer, size: int) -> None:
        pe = tl.program_id(1) * tl.num_programs(0) + tl.program_id(0)
        for row in range(rows):
            start = pe * size + row * (columns + stride)
            with tl.scratch():
                block = tl.load(x + start, (2, columns), (columns + stride, 1))
                for name in names:
                    block = getattr(tl, name)(block) - tl.max(block, axis=1, keep_dims=True)
                tl.store(y + start, block, (columns + stride, 1))

    def program(rank: int) -> np.ndarray:
        device = torch.ahbm.get_device_properties()
        size = (rows + 1) * (columns + stride)
        values = np.linspace(-3, 3, device.cubes * device.pes_per_cube * size, dtype=np.float32)
        placement = DPPolicy(cube="row_wise", pe="row_wise")
        x = torch.from_numpy(values, dp=placement)
        y = torch.empty(values.shape, dtype=torch.float32, dp=placement)
        torch.launch("vectors", kernel, x, y, size)
        return y.numpy()

    return program


def _gathers(draw: Random) -> Program:
    """A kernel on all PEs that gathers rows of the whole tensor beside loads of others."""
    rows, columns = draw.randint(2, 20), draw.choice((1, 64, 600, 3000))
    count = draw.randint(1, 12)
    numbers = [draw.randrange(rows) for _ in range(count)]

    def kernel(x: tl.Pointer, named: tl.Pointer, y: tl.Pointer) -> None:
        pe = tl.program_id(1) * tl.num_programs(0) + tl.program_id(0)
        listed = tl.load(named, count)
        # A run without data takes integers only.
        by_value = pe % 2 and listed.data is not None
        found = tl.gather(x, listed if by_value else numbers, columns) + tl.load(x, columns)
        tl.store(y + pe * count * columns, found)

    def program(rank: int) -> np.ndarray:
        device = torch.ahbm.get_device_properties()
        pes = device.cubes * device.pes_per_cube
        placement = DPPolicy(cube="row_wise", pe="row_wise")
        values = np.arange(rows * pes * columns, dtype=np.float32).reshape(-1, columns)
        x = torch.from_numpy(values, dp=placement)
        everywhere = DPPolicy(cube="replicate", pe="replicate")
        named = torch.from_numpy(np.array(numbers, np.int32), dp=everywhere)
        y = torch.empty((pes * count, columns), dtype=torch.float32, dp=placement)
        torch.launch("gathers", kernel, x, named, y)
        return y.numpy()

    return program


def _in_flight(draw: Random) -> Program:
    """A kernel on all PEs with loads, chains, products and stores in flight together."""
    rows, columns, blocks = draw.randint(1, 40), draw.randint(1, 90), draw.randint(2, 5)
    multiplies, reduces = draw.random() < 0.5, draw.random() < 0.7

    def step(x: tl.Value, total: tl.Value) -> tuple[tl.Value, tl.Value]:
        largest = tl.max(x, axis=1, keep_dims=True) if reduces else 1.0
        powers = tl.exp2(x - largest)
        return total + tl.sum(powers, axis=1, keep_dims=True), powers

    def kernel(x: tl.Pointer, y: tl.Pointer, size: int) -> None:
        start = (tl.program_id(1) * tl.num_programs(0) + tl.program_id(0)) * size
        block, total = rows * columns, tl.zeros((rows, 1), tl.float32)
        loads = [tl.load_async(x + start + i * block, (rows, columns)) for i in range(2)]
        for i in range(blocks):
            values = loads[i % 2].wait()
            with tl.scratch():
                chain = tl.fused_async(step, values, total, out=(total, None))
                product = tl.composite("gemm", values, values.mT) if multiplies else None
                _, powers = chain.wait()
                tl.store_async(y + start + i * block, powers)
                if product is not None:
                    tl.fused(lambda a: tl.minimum(a, 0), tl.wait(product))
                if i + 2 < blocks:
                    at = x + start + (i + 2) * block
                    loads[i % 2] = tl.load_async(at, (rows, columns), out=values)
        tl.store(x + start, tl.maximum(total, 0))

    def program(rank: int) -> np.ndarray:
        device = torch.ahbm.get_device_properties()
        size = blocks * rows * columns
        values = np.linspace(-3, 3, device.cubes * device.pes_per_cube * size, dtype=np.float32)
        placement = DPPolicy(cube="row_wise", pe="row_wise")
        x = torch.from_numpy(values, dp=placement)
        y = torch.empty(values.shape, dtype=torch.float32, dp=placement)
        torch.launch("in flight", kernel, x, y, size)
        return y.numpy()

    return program


PROGRAMS = (
    _all_reduce,
    _own_all_reduce,
    _product,
    _products,
    _attention,
    _addresses,
    _vectors,
    _gathers,
    _in_flight,
)


def hardware(draw: Random) -> dict[str, Any]:
    """Changes of the topology file: small chips with any network, memory and PEs."""
    changes: dict[str, Any] = {
        "sip__cube_mesh": {"w": draw.randint(1, 2), "h": draw.randint(1, 2)},
        "cube__pe_layout__pe_per_corner": 1,
        "cube__pe_layout__corners": draw.choice((["NW"], ["NW", "SE"], ["NW", "NE", "SW", "SE"])),
        "system__sips__fabric": draw.choice(("direct", "direct", "switch")),
        "noc__flow_control": draw.choice(("unlimited", "unlimited", "unlimited", "credits")),
        "hbm__model": draw.choice(("channels", "channels", "banks")),
        "packet_bytes": draw.choice((256, 1024, 4096)),
        "cube__hbm_ctrl__switch_penalty_ns": draw.choice((0.0, 7.5)),
        "host__launch_overhead_ns": draw.choice((0.0, 0.0, 35.0)),
        "pe__dma__channels": draw.choice((1, 2, 8)),
        "pe__dma__outstanding": draw.choice((1, 5, 16)),
        "pe__scheduler__tile_buffers": draw.choice((2, 3, 6)),
        "pe__tile": {"m": draw.choice((16, 32)), "k": draw.choice((16, 64)), "n": 32},
        "pe__gemm__model": draw.choice(("macs", "systolic_os")),
    }
    return changes


def random_run(seed: int, *, differ: bool = False) -> Simulation:
    """The run of a seed, recorded; on a machine whose parts `differ`, or which is uniform."""
    draw = Random(seed)
    sips, topology = draw.choice((1, 2, 2, 3)), variant_text(**hardware(draw))
    if differ:
        topology = with_random_overrides(topology, seed, sips)
    # Of consecutive seeds, each has another kind of program.
    program = PROGRAMS[seed % len(PROGRAMS)](draw)
    return simulate(program, sips, topology=topology, data=draw.random() < 0.8, record=True)


def report(seed: int, *, differ: bool = False) -> str:
    """Everything that the run of a seed reports: digests, times, counters, outcomes, events, and
    checksums of what it records.
    """
    world = random_run(seed, differ=differ)
    # Sorted: the cores pass on the rows of a table in chunks of other sizes.
    recorded = sorted((sip, table, crc32(rows)) for (sip, table), rows in world.rows.items())
    texts = crc32(repr(world.texts).encode())
    return repr((seed, world.done.events, world.done.sips, recorded, texts))


if __name__ == "__main__":
    begin, count = map(int, sys.argv[1:])
    for number in range(begin, begin + count):
        print(report(number))
