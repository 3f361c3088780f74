"""No message of a random program leaves a SIP before the bound that the SIP gave."""

from collections.abc import Callable
from random import Random

import pytest

from runtime import DPPolicy, tl, torch
from runtime.ccl.config import load_ccl
from runtime.model.topology import parse_topology
from tests.support.bound_check import BoundCheck
from tests.support.topologies import variant_text

dist = torch.distributed
SIPS = 3
ONE_PE = DPPolicy(num_cubes=1, num_pes=1)


def no_less_than_all(block: tl.Value) -> tl.Value:
    """The same elements, in two passes."""
    return tl.maximum(block, tl.min(block))


def multiply(x: tl.Pointer, y: tl.Pointer) -> None:
    """A product that runs beside the vector engine."""
    product = tl.composite("gemm", tl.ref(x, (40, 40)), tl.ref(x, (40, 40)))
    doubled = tl.load_async(x, (40, 40)).wait() * 2
    chain = tl.fused_async(no_less_than_all, doubled)
    tl.wait(product)
    tl.store_async(y, tl.wait(chain))


def converse(x: tl.Pointer, steps: int) -> None:
    """Exchange with the neighbours, and multiply meanwhile."""
    for step in range(steps):
        with tl.scratch():
            received = tl.recv_async("global_W", (40, 40), tl.float32)
            product = tl.composite("gemm", tl.ref(x, (40, 40)), tl.ref(x, (40, 40)))
            block = tl.load(x, (40, 40))
            chain = tl.fused_async(no_less_than_all, block)
            tl.fused_async(no_less_than_all, block, out=block)
            tl.send("global_E", block)
            for operation in (product, received) if step % 2 else (received, product):
                tl.wait(operation)
            tl.wait(chain)


class RandomProgram:
    """Every rank takes the same random steps, and waits for its device at moments of its own."""

    def __init__(self, seed: int, rank: int) -> None:
        self._rank, self._draw, self._own = rank, Random(seed), Random(100 * seed + rank)
        self._x, self._y = torch.ones(40, 40, dp=ONE_PE), torch.zeros(40, 40, dp=ONE_PE)
        self._reduced, self._stream = torch.ones(500), torch.ahbm.Stream()
        self._works: list[dist.Work] = []

    def step(self, number: int) -> None:
        """Submit something, and then wait for something or not."""
        match self._draw.choice(("multiply", "stream", "reduce", "message", "converse")):
            case "multiply":
                torch.launch("multiply", multiply, self._x, self._y)
            case "stream":
                with torch.ahbm.stream(self._stream):
                    torch.launch("multiply", multiply, self._x, self._y)
            case "reduce":
                self._works.append(dist.all_reduce(self._reduced, async_op=True))
            case "message":
                self._message(self._draw.randrange(SIPS), number)
            case _:
                while self._works:
                    self._works.pop().wait()
                torch.launch("converse", converse, self._x, self._draw.randint(1, 3))
        self._wait()

    def _message(self, source: int, tag: int) -> None:
        if self._rank != source:
            received = torch.empty(40, 40, dp=ONE_PE)
            self._works.append(dist.irecv(received, source, tag=tag))
            return
        for other in range(SIPS):
            if other != source:
                self._works.append(dist.isend(self._x, other, tag=tag))

    def _wait(self) -> None:
        match self._own.choice(("nothing", "read", "write", "work", "poll", "synchronize")):
            case "read":
                self._y.numpy()
            case "write":
                self._y.copy_(torch.zeros(40, 40, dp=ONE_PE))
            case "work" if self._works:
                self._works.pop(self._own.randrange(len(self._works))).wait()
            case "poll" if self._works:
                while not self._works[-1].is_completed():
                    pass
            case "synchronize":
                torch.ahbm.synchronize()
            case _:
                pass


def random_program(seed: int) -> Callable[[int], None]:
    def program(rank: int) -> None:
        dist.init_process_group("ahbm", algorithm="ring")
        steps = RandomProgram(seed, rank)
        for number in range(8):
            steps.step(number)

    return program


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_messages_of_random_programs_keep_their_bounds(seed: int) -> None:
    text = variant_text(
        sip__cube_mesh={"w": 2, "h": 1},
        cube__pe_layout__pe_per_corner=1,
        host__launch_overhead_ns=700 * (seed % 2),
    )
    topology = parse_topology(text, "topology.yaml", SIPS)
    check = BoundCheck(topology, load_ccl(), random_program(seed))
    check.run()
    assert min(check.margins_ps, default=0) >= 0
