"""Programs of streams without an order that CUDA needs, and their right twins.

Each takes `right`, which is 1 for the twin. Their numbers are right all the same: kernbench orders
commands that use one tensor.
"""

from collections.abc import Callable

from runtime import DPPolicy, tl, torch
from runtime.language.value import Pointer

COUNT = 64
ON_ONE = DPPolicy(num_cubes=1, num_pes=1)
ahbm, dist = torch.ahbm, torch.distributed
Program = Callable[[int], None]
PROGRAMS: dict[str, Program] = {}
"""Programs of one rank, or of two where the name ends so."""


def unordered(program: Program) -> Program:
    """Add a program."""
    PROGRAMS[program.__name__] = program
    return program


def zeros() -> torch.Tensor:
    return torch.zeros(COUNT, dp=ON_ONE)


def fill(x: Pointer) -> None:
    tl.store(x, tl.full(COUNT, 1.0, tl.float32))


def add_to(x: Pointer, y: Pointer) -> None:
    tl.store(y, tl.load(x, COUNT) + 1)


def write(x: torch.Tensor) -> None:
    torch.launch("fill", fill, x)


def read(x: torch.Tensor) -> None:
    torch.launch("add_to", add_to, x, _result())


def _result() -> torch.Tensor:
    # Made by the host, in the stream that uses it.
    return torch.empty(COUNT, dp=ON_ONE)


@unordered
def written_and_read_beside(right: int) -> None:
    x, side = zeros(), ahbm.Stream()
    ahbm.synchronize()
    write(x)
    if right:
        side.wait_stream(ahbm.current_stream())
    with side:
        read(x)


@unordered
def read_and_overwritten_beside(right: int) -> None:
    x, side = zeros(), ahbm.Stream()
    ahbm.synchronize()
    read(x)
    if right:
        side.wait_stream(ahbm.current_stream())
    with side:
        write(x)


@unordered
def both_written(right: int) -> None:
    x, one, other = zeros(), ahbm.Stream(), ahbm.Stream()
    ahbm.synchronize()
    with one:
        write(x)
    if right:
        other.wait_stream(one)
    with other:
        write(x)


@unordered
def made_beside(right: int) -> None:
    side = ahbm.Stream()
    x = zeros()
    if right:
        side.wait_stream(ahbm.current_stream())
    with side:
        read(x)


@unordered
def event_before_the_kernel(right: int) -> None:
    x, side, event = zeros(), ahbm.Stream(), ahbm.Event()
    ahbm.synchronize()
    if not right:
        event.record()
    write(x)
    if right:
        event.record()
    side.wait_event(event)
    with side:
        read(x)


@unordered
def event_for_another_stream(right: int) -> None:
    x, side, third, event = zeros(), ahbm.Stream(), ahbm.Stream(), ahbm.Event()
    ahbm.synchronize()
    write(x)
    event.record()
    (side if right else third).wait_event(event)
    with side:
        read(x)


@unordered
def joined_too_early(right: int) -> None:
    x, side = zeros(), ahbm.Stream()
    ahbm.synchronize()
    if not right:
        ahbm.current_stream().wait_stream(side)
    with side:
        write(x)
    if right:
        ahbm.current_stream().wait_stream(side)
    read(x)


@unordered
def read_by_the_host(right: int) -> None:
    x, side = zeros(), ahbm.Stream()
    ahbm.synchronize()
    with side:
        write(x)
    if right:
        side.synchronize()
    x.numpy()


@unordered
def written_by_the_host(right: int) -> None:
    x, side = zeros(), ahbm.Stream()
    ahbm.synchronize()
    with side:
        read(x)
    if right:
        side.synchronize()
    x[:4] = 9


@unordered
def queried_too_early(right: int) -> None:
    x, side = zeros(), ahbm.Stream()
    ahbm.synchronize()
    with side:
        write(x)
        event = side.record_event()
    done = event.query()
    while right and not done:
        done = event.query()
    read(x)


@unordered
def all_reduce_without_wait_of_two(right: int) -> None:
    x = zeros()
    work = dist.all_reduce(x, async_op=True)
    if right:
        work.wait()
    read(x)
    work.wait()


@unordered
def broadcast_overwritten_of_two(right: int) -> None:
    x = zeros()
    work = dist.broadcast(x, 0, async_op=True)
    if right:
        work.wait()
    write(x)
    work.wait()


@unordered
def all_reduce_of_another_stream_of_two(right: int) -> None:
    x, side = zeros(), ahbm.Stream()
    ahbm.synchronize()
    with side:
        write(x)
    if right:
        ahbm.current_stream().wait_stream(side)
    dist.all_reduce(x)


@unordered
def received_without_wait_of_two(right: int) -> None:
    x, rank = zeros(), dist.get_rank()
    ahbm.synchronize()
    work = dist.isend(x, 1) if rank == 0 else dist.irecv(x, 0)
    if right:
        work.wait()
    read(x)
    work.wait()


@unordered
def sent_and_overwritten_of_two(right: int) -> None:
    x, rank = zeros(), dist.get_rank()
    ahbm.synchronize()
    work = dist.isend(x, 1) if rank == 0 else dist.irecv(x, 0)
    if right or rank:
        work.wait()
    write(x)
    work.wait()


@unordered
def streams_joined_by_a_third(right: int) -> None:
    x, side, third = zeros(), ahbm.Stream(), ahbm.Stream()
    ahbm.synchronize()
    write(x)
    side.wait_stream(ahbm.current_stream())
    if right:
        third.wait_stream(side)
    with third:
        read(x)


@unordered
def event_recorded_again(right: int) -> None:
    x, side, event = zeros(), ahbm.Stream(), ahbm.Event()
    ahbm.synchronize()
    event.record()
    write(x)
    if right:
        event.record()
    side.wait_event(event)
    with side:
        read(x)


@unordered
def event_that_the_host_waits_for(right: int) -> None:
    x, side, event = zeros(), ahbm.Stream(), ahbm.Event()
    ahbm.synchronize()
    if not right:
        event.record()
    write(x)
    if right:
        event.record()
    event.synchronize()
    with side:
        read(x)


@unordered
def gathered_without_wait_of_two(right: int) -> None:
    x, parts = zeros(), [zeros(), zeros()]
    ahbm.synchronize()
    work = dist.all_gather(parts, x, async_op=True)
    if right:
        work.wait()
    read(parts[1])
    work.wait()


@unordered
def first_of_two_works_of_two(right: int) -> None:
    x, other = zeros(), zeros()
    ahbm.synchronize()
    first = dist.all_reduce(x, async_op=True)
    second = dist.all_reduce(other, async_op=True)
    # Collectives follow each other, so the wait for the second one covers both.
    (second if right else first).wait()
    read(x if right else other)
    second.wait()


@unordered
def event_of_another_stream(right: int) -> None:
    x, side, other, event = zeros(), ahbm.Stream(), ahbm.Stream(), ahbm.Event()
    ahbm.synchronize()
    write(x)
    event.record(ahbm.current_stream() if right else other)
    side.wait_event(event)
    with side:
        read(x)


@unordered
def event_recorded_again_behind_its_wait(right: int) -> None:
    x, side, event = zeros(), ahbm.Stream(), ahbm.Event()
    ahbm.synchronize()
    event.record()
    if not right:
        side.wait_event(event)
    write(x)
    event.record()
    if right:
        side.wait_event(event)
    with side:
        read(x)


@unordered
def one_launch_of_many(right: int) -> None:
    x, result, side = zeros(), _result(), ahbm.Stream()
    ahbm.synchronize()
    for number in range(60):
        if right or number != 30:
            ahbm.current_stream().wait_stream(side)
        write(x)
        side.wait_stream(ahbm.current_stream())
        with side:
            torch.launch("add_to", add_to, x, result)


@unordered
def parts_of_one_tensor(right: int) -> None:
    def fill_part(x: Pointer, first: int) -> None:
        tl.store(x + first, tl.full(COUNT // 2, 1.0, tl.float32))

    x, side = zeros(), ahbm.Stream()
    ahbm.synchronize()
    torch.launch("fill_part", fill_part, x, 0)
    with side:
        # The other half, or one that has an element of the first.
        torch.launch("fill_part", fill_part, x, COUNT // 2 - (not right))


@unordered
def work_that_another_stream_waits_for_of_two(right: int) -> None:
    x = zeros()
    ahbm.synchronize()
    work = dist.all_reduce(x, async_op=True)
    if right:
        work.wait()
    else:
        with ahbm.Stream():
            work.wait()
    read(x)
    work.wait()


@unordered
def barrier_of_ranks_of_two(right: int) -> None:
    # The host waits for the current stream there, and for no other.
    x, side = zeros(), ahbm.Stream()
    ahbm.synchronize()
    with ahbm.current_stream() if right else side:
        write(x)
    dist.barrier()
    with side if right else ahbm.current_stream():
        read(x)


@unordered
def scattered_without_wait_of_two(right: int) -> None:
    x, parts = zeros(), [zeros(), zeros()]
    ahbm.synchronize()
    work = dist.scatter(x, parts if dist.get_rank() == 0 else None, src=0, async_op=True)
    if right:
        work.wait()
    read(x)
    work.wait()
