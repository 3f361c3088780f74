"""Programs of random collectives, in loops, with random disturbances between them."""

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import numpy as np
import yaml

from runtime import DPPolicy, tl, torch
from runtime.core.config.config_file import default_file
from runtime.device.rank.rank_state import running_rank
from tests.support.repeated_launches import MESH, own_start
from tests.support.topologies import variant_text
from tests.support.world import Simulation, simulate

dist = torch.distributed
Tensor = torch.Tensor
PLACEMENTS = (
    DPPolicy(cube="row_wise", pe="row_wise"),
    DPPolicy(num_cubes=1, num_pes=1),
    DPPolicy(cube="row_wise", pe="row_wise", num_cubes=1),
)
TYPES = (np.float32, np.float16, np.int32)


def doubled(x: tl.Pointer, size: int) -> None:
    tl.store(own_start(x, size), tl.load(own_start(x, size), size) * 2)


def random_exchanges(seed: int) -> Simulation:
    """The run of the program with a seed."""
    draw = Random(seed)
    sips, shape = draw.choice((1, 2, 2, 2, 3, 4, 4)), draw.choice(("ring_1d", "mesh_2d"))
    changes: dict[str, Any] = {**MESH}
    if sips == 4 and shape == "mesh_2d":
        changes |= {"system__sips__topology": "mesh_2d", "system__sips__w": 2, "system__sips__h": 2}
    if draw.random() < 0.25:
        changes["system__sips__fabric"] = "switch"
    ccl = yaml.safe_load(default_file("ccl.yaml").read_text(encoding="utf-8"))
    ccl["defaults"]["n_slots"] = draw.choice((2, 3, 8, 16))
    ccl["defaults"]["slot_size"] = draw.choice((256, 1024, 4096))
    ccl["defaults"]["buffer_kind"] = draw.choice(("tcm", "tcm", "tcm", "tcm", "hbm", "sram"))
    with_data = draw.random() < 0.8
    return simulate(
        lambda rank: _run(rank, Random(seed + 1), Random(1000 * seed + rank)),
        sips,
        topology=variant_text(**changes),
        ccl=yaml.safe_dump(ccl),
        data=with_data,
        record=draw.random() < 0.5,
    )


def _run(rank: int, draw: Random, own: Random) -> list[np.ndarray]:
    """The program of a rank: `draw` is common to all ranks, `own` is its own."""
    dist.init_process_group("ahbm")
    size = dist.get_world_size()
    placed, dtype = draw.choice(PLACEMENTS), draw.choice(TYPES)
    count = 4 * size * draw.choice((1, 6, 24, 100, 520))
    x, y = (_tensor(count, placed, dtype, rank + first) for first in (0, 3))
    wide = _tensor(count * size, placed, dtype, rank)
    for _ in range(draw.randint(1, 3)):
        calls = [_call(draw, size, x, y, wide, count) for _ in range(draw.randint(1, 3))]
        waits, disturbed = draw.choice(("each", "none", "some")), draw.random() < 0.4
        for _ in range(draw.randint(3, 14)):
            for call in calls:
                call()
                if waits == "each" or (waits == "some" and draw.random() < 0.4):
                    torch.ahbm.synchronize()
            if disturbed and draw.random() < 0.3:
                _disturb(own, x, y)
        torch.ahbm.synchronize()
    return [each.numpy() for each in (x, y, wide)] if torch.ahbm.has_data() else []


def _tensor(count: int, placed: DPPolicy, dtype: type, first: int) -> Tensor:
    values: list[int] = (np.arange(first, first + count) % 7).tolist()
    return torch.from_numpy(np.array(values, np.dtype(dtype.__name__)), dp=placed)


def _call(
    draw: Random, size: int, x: Tensor, y: Tensor, wide: Tensor, count: int
) -> Callable[[], object]:
    root, one = draw.randrange(size), draw.choice((x, y))
    most = draw.randint(size, count // size)
    operation = draw.choice((dist.ReduceOp.SUM, dist.ReduceOp.MAX, dist.ReduceOp.MIN))
    calls: Sequence[Callable[[], object]] = (
        lambda: dist.all_reduce(one, operation),
        lambda: dist.all_reduce(one, operation),
        lambda: dist.all_reduce(x if one is y else y, dist.ReduceOp.MAX, async_op=True),
        lambda: dist.broadcast(one, root),
        lambda: dist.reduce(one, root, operation),
        lambda: dist.all_gather_into_tensor(wide, one),
        lambda: dist.reduce_scatter_tensor(one, wide, operation),
        lambda: dist.all_to_all_single(y, x),
        lambda: _exchange_uneven(most, x, y),
        lambda: _pass_on(x, y),
        dist.barrier,
    )
    return draw.choice(calls)


def _exchange_uneven(most: int, x: Tensor, y: Tensor) -> None:
    """An exchange of parts that differ: rank r sends `most` elements, less r, to each rank."""
    rank, size = dist.get_rank(), dist.get_world_size()
    sent, received = [most - rank] * size, [most - other for other in range(size)]
    into, source = y.narrow(0, 0, sum(received)), x.narrow(0, 0, sum(sent))
    dist.all_to_all_single(into, source, received, sent)


def _pass_on(x: Tensor, y: Tensor) -> None:
    """A message from each rank to the next one."""
    rank, size = dist.get_rank(), dist.get_world_size()
    if size > 1:
        pair = [
            dist.P2POp(dist.isend, x, (rank + 1) % size),
            dist.P2POp(dist.irecv, y, (rank - 1) % size),
        ]
        for work in dist.batch_isend_irecv(pair):
            work.wait()


def _disturb(own: Random, x: Tensor, y: Tensor) -> None:
    """Something of a rank alone, which may shift it against the others."""
    match own.randrange(5):
        case 0:
            running_rank().device.compute("host", own.choice((500, 3_000, 9_000, 20_000, 300_000)))
        case 1:
            torch.ahbm.Event().record()
        case 2:
            torch.ahbm.synchronize()
        case 3:
            y.copy_(x)
        case _:
            pass
