"""Streams, events, profiles and times of the rank API, on one SIP in this process."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from runtime import DPPolicy, tl, torch
from runtime.core.device import Handle
from runtime.core.errors import IpcqDeadlock
from runtime.device.streams.profiler import Profile
from tests.support.topologies import variant_text
from tests.support.world import Simulation, simulate

ahbm = torch.ahbm
TOPOLOGY = variant_text(
    sip__cube_mesh={"w": 2, "h": 1},
    cube__pe_layout__pe_per_corner=1,
    cube__pe_layout__corners=["NW"],
)
ON_ONE = DPPolicy(num_cubes=1, num_pes=1)
TWO_CUBES = DPPolicy(cube="row_wise", num_cubes=2, num_pes=1)
COUNT = 1024


def run(program: Callable[[], Any], **options: Any) -> Simulation:
    return simulate(lambda _rank: program(), 1, topology=TOPOLOGY, **options)


def result(program: Callable[[], Any], **options: Any) -> Any:
    return run(program, **options).returned[0]


def increment(x: tl.Pointer, times: int) -> None:
    """Kernel: add 1 to the elements, `times` times."""
    values = tl.load(x, COUNT)
    for _ in range(times):
        values = values + 1
    tl.store(x, values)


def launch(tensor: torch.Tensor, times: int = 1) -> Handle:
    return torch.launch("increment", increment, tensor, times)


def zeros() -> torch.Tensor:
    """A copy of the host, which maps no page."""
    return torch.from_numpy(np.zeros(COUNT, np.float32), dp=ON_ONE)


def test_launches_and_copies_do_not_block_and_reads_do() -> None:
    def program() -> tuple[int, int, np.ndarray]:
        x = zeros()
        for _ in range(3):
            launch(x)
        x[:4] = 9
        queued_ps = ahbm.elapsed_ps()
        values = x.numpy()
        return queued_ps, ahbm.elapsed_ps(), values

    queued_ps, read_ps, values = result(program)
    assert queued_ps == 0 < read_ps
    assert values[:6].tolist() == [9, 9, 9, 9, 3, 3]


def test_the_bytes_of_a_copy_are_those_of_the_call() -> None:
    def program() -> list[float]:
        array = np.arange(4, dtype=np.float32)
        x = torch.from_numpy(array, dp=ON_ONE)
        array[:] = -1
        return x.numpy().tolist()

    assert result(program) == [0, 1, 2, 3]


def test_a_kernel_starts_when_the_report_of_the_kernel_before_has_reached_the_io_cpu() -> None:
    def program() -> list[Handle]:
        x = zeros()
        handles = [launch(x) for _ in range(4)]
        ahbm.synchronize()
        return handles

    handles = result(program)
    for before, after in pairwise(handles):
        assert after.released_ps == before.device_done_ps < before.completed_ps


def far() -> torch.Tensor:
    """Zeros on PE 0 of cube 1: a window of a tensor on both cubes."""
    return torch.zeros(2 * COUNT, dp=TWO_CUBES).narrow(0, COUNT, COUNT)


@pytest.mark.parametrize(("other", "serial"), [(zeros, True), (far, False)], ids=["same", "other"])
def test_streams_run_side_by_side_where_they_share_no_pe(
    other: Callable[[], torch.Tensor], serial: bool
) -> None:
    def program() -> list[Handle]:
        x, y, side = zeros(), other(), ahbm.Stream()
        for tensor in (x, y):
            launch(tensor)
        ahbm.synchronize()
        first = launch(x, 50)
        with ahbm.stream(side):
            second = launch(y, 50)
        ahbm.synchronize()
        return [first, second]

    first, second = result(program)
    if serial:
        assert second.released_ps == first.device_done_ps
    else:
        assert second.queued_ps == 0
        assert second.released_ps < first.device_done_ps


def test_a_stream_waits_for_an_event_and_for_another_stream() -> None:
    def program() -> list[Handle]:
        x, y, z = zeros(), zeros(), zeros()
        ahbm.synchronize()
        side, third = ahbm.Stream(), ahbm.Stream()
        first = launch(x, 50)
        event = ahbm.current_stream().record_event()
        with ahbm.stream(side):
            event.wait()
            y.copy_(1)
            second = ahbm.Event()
            second.record()
        third.wait_stream(side)
        with third:
            z.copy_(1)
            assert ahbm.current_stream() == third
        assert ahbm.current_stream() == ahbm.default_stream() != side
        ahbm.synchronize()
        assert event.recorded is not None
        assert second.recorded is not None
        return [first, event.recorded, second.recorded]

    world = run(program)
    first, event, second = world.returned[0]
    assert first.device_done_ps == event.device_done_ps
    # The writes of y and z wait for the kernel; the three before it have not.
    starts = sorted(record.start_ps for _, record in world.of("host", "MemoryWriteMsg"))
    assert starts[2] < event.device_done_ps <= starts[3] < second.device_done_ps <= starts[4]


def test_a_stream_and_an_event_are_awaited_on_their_own() -> None:
    def program() -> list[bool]:
        side = ahbm.Stream()
        x, y = zeros(), zeros()
        ahbm.synchronize()
        launch(x, 200)
        with ahbm.stream(side):
            y.copy_(1)
            event = side.record_event()
        found = [side.query(), event.query(), ahbm.Event().query()]
        event.synchronize()
        found += [event.query(), ahbm.default_stream().query()]
        side.synchronize()
        found += [side.query(), ahbm.default_stream().query()]
        ahbm.default_stream().synchronize()
        return [*found, ahbm.default_stream().query()]

    assert result(program) == [False, False, True, True, False, True, False, True]


def test_what_is_no_stream_and_no_event_is_a_type_error() -> None:
    def program() -> None:
        event = ahbm.Event(enable_timing=True)
        for call in (event.record, event.wait):
            with pytest.raises(TypeError, match=r"expected a torch\.ahbm\.Stream, but got int"):
                call(3)
        event.record()
        with pytest.raises(TypeError, match=r"expected a torch\.ahbm\.Event, but got NoneType"):
            event.elapsed_time(None)

    run(program)


def test_a_loop_around_a_poll_lets_time_pass_until_what_it_waits_for_is_complete() -> None:
    def program() -> list[tuple[int, int, bool]]:
        x, y = zeros(), zeros()
        ahbm.synchronize()
        found: list[tuple[int, int, bool]] = []
        for wait in (False, True):
            start_ps = ahbm.elapsed_ps()
            launch(x, 200)
            side = ahbm.Stream()
            with ahbm.stream(side):
                y.copy_(1)
            launch(x, 200)
            event, polls = ahbm.default_stream().record_event(), 0
            if wait:
                event.synchronize()
            while not event.query():
                polls += 1
            found.append((ahbm.elapsed_ps() - start_ps, polls, side.query()))
        return found

    (polled_ps, polls, side), (waited_ps, none, _) = result(program)
    assert side
    # One poll takes no time, and one is made after the answers to a mapping, to two launches and to
    # a copy; the answer to the event ends the loop.
    assert (polls, none) == (5, 0)
    # Only the first round maps the tensors.
    assert 0 < waited_ps <= polled_ps


def test_a_loop_around_a_poll_for_what_never_comes_is_a_deadlock() -> None:
    def program(rank: int) -> None:
        torch.distributed.init_process_group("ahbm")
        if rank == 0:
            work = torch.distributed.irecv(zeros(), src=1)
            while not work.is_completed():
                pass

    with pytest.raises(IpcqDeadlock, match="irecv"):
        simulate(program, 2)


def test_a_tensor_orders_streams_without_an_event() -> None:
    def program() -> list[float]:
        x = zeros()
        launch(x, 100)
        with ahbm.stream(ahbm.Stream()):
            launch(x, 10)
        launch(x, 1)
        return x[:2].tolist()

    assert result(program) == [111, 111]


def test_the_time_between_events_is_that_of_the_commands_between_them() -> None:
    def program() -> tuple[float, list[Handle]]:
        x = zeros()
        launch(x)
        ahbm.synchronize()
        start, end = (ahbm.Event(enable_timing=True) for _ in range(2))
        start.record()
        handles = [launch(x) for _ in range(5)]
        end.record()
        end.synchronize()
        return start.elapsed_time(end), handles

    elapsed_ms, handles = result(program)
    # The first launch finds its stream idle, right behind the packet of the event.
    took_ps = handles[-1].device_done_ps - handles[0].released_ps
    assert elapsed_ms == pytest.approx(took_ps / 1e9, rel=0.001)


def test_events_without_a_time_raise_the_errors_of_pytorch() -> None:
    def program() -> None:
        timed, plain = ahbm.Event(enable_timing=True), ahbm.Event()
        with pytest.raises(ValueError, match="created with argument 'enable_timing=True'"):
            timed.elapsed_time(plain)
        with pytest.raises(ValueError, match="must be recorded before calculating elapsed time"):
            timed.elapsed_time(ahbm.Event(enable_timing=True))
        timed.record()
        later = ahbm.Event(enable_timing=True)
        later.record()
        with pytest.raises(RuntimeError, match="must be completed before calculating elapsed time"):
            timed.elapsed_time(later)

    run(program)


def test_a_stream_of_another_device_is_refused() -> None:
    def program() -> None:
        with pytest.raises(RuntimeError, match="invalid device ordinal 1: this rank owns SIP 0"):
            ahbm.Stream(1)
        with pytest.raises(TypeError, match=r"expected a torch.ahbm.Stream, but got str"):
            ahbm.set_stream("a stream")  # pyright: ignore[reportArgumentType]
        ahbm.set_stream(None)
        assert ahbm.Stream(0) != ahbm.Stream("ahbm:0")

    run(program)


def test_now_is_the_simulated_time_in_nanoseconds() -> None:
    def program() -> tuple[float, int]:
        zeros()
        ahbm.synchronize()
        return ahbm.now_ns(), ahbm.elapsed_ps()

    now_ns, elapsed_ps = result(program)
    assert now_ns * 1000 == elapsed_ps > 0


@pytest.mark.parametrize("data", [True, False])
def test_a_profile_has_the_records_of_its_body_and_of_nothing_else(data: bool) -> None:
    def program() -> tuple[Profile, int]:
        x = zeros()
        launch(x)
        with ahbm.profile() as prof:
            launch(x, 3)
            with ahbm.stream(ahbm.Stream()):
                zeros()
        launch(x)
        return prof, ahbm.elapsed_ps()

    world = run(program, data=data)
    prof, after_ps = world.returned[0]
    inside = [each for each in world.records[0] if prof.start_ps <= each.start_ps < prof.end_ps]
    assert prof.records == inside
    assert 0 < prof.start_ps < prof.end_ps == after_ps
    assert prof.duration_ns == (prof.end_ps - prof.start_ps) / 1000
    totals = {(each.engine, each.name): each for each in prof.totals()}
    assert totals["pe_math", "add"].count == 3
    assert totals["host", "MemoryWriteMsg"].nbytes == 4 * COUNT
    assert "pe_math" in prof.table()
    assert len(prof.table(2).splitlines()) == 4


def test_a_deadlock_names_the_blocked_kernel_with_commands_queued_behind_it() -> None:
    def listen(_at: tl.Pointer) -> None:
        tl.recv("global_W", 1, tl.float32)

    def program(rank: int) -> None:
        torch.distributed.init_process_group("ahbm", algorithm="ring")
        x = zeros()
        if rank == 0:
            torch.launch("listen", listen, x)
            for _ in range(3):
                launch(x)
            with ahbm.stream(ahbm.Stream()):
                launch(zeros())
            ahbm.synchronize()

    with pytest.raises(IpcqDeadlock) as raised:
        simulate(program, 2, topology=TOPOLOGY)
    assert [line.partition(" recv")[0] for line in raised.value.pes] == [
        "sip 0 cube 0 pe 0: kernel 'listen'"
    ]
    assert raised.value.ranks == ("rank 0: waits for kernel 'listen'",)


def test_memory_that_a_stream_may_still_use_is_not_that_of_another_tensor() -> None:
    """The kernel takes long, and the tensor dies while it waits for its turn."""

    def program() -> tuple[list[int], list[float]]:
        side, x = ahbm.Stream(), zeros()
        launch(x, 200)
        y = torch.full((COUNT,), 3.0, dp=ON_ONE)
        addresses = [y.shards[0].address]
        del y
        with ahbm.stream(side):
            z = torch.full((COUNT,), 7.0, dp=ON_ONE)
        addresses.append(z.shards[0].address)
        read = z[:2].tolist()
        ahbm.synchronize()
        addresses.append(zeros().shards[0].address)
        return addresses, [*read, *z[:2].tolist()]

    addresses, values = result(program)
    assert addresses[0] == addresses[2] != addresses[1]
    assert values == [7, 7, 7, 7]


def test_a_new_stream_waits_for_nothing_but_the_memory_that_it_uses_again() -> None:
    """The rule of PyTorch. `y` is dead when the stream is made, and `z` takes over its memory."""

    def program() -> tuple[list[Handle], list[float]]:
        x, y = zeros(), zeros()
        ahbm.synchronize()
        launches, address = [launch(x, 50), launch(y, 50)], y.address
        del y
        with ahbm.Stream() as side:
            event = side.record_event()
            z = torch.full((COUNT,), 7.0, dp=ON_ONE)
        assert z.address == address
        values = z[:2].tolist()
        assert event.recorded is not None
        return [*launches, event.recorded], values

    (first, last, event), values = result(program)
    assert event.device_done_ps < first.device_done_ps < last.device_done_ps
    assert values == [7, 7]
