"""Collectives that are repeated: which are, what disturbs one, and that nothing else differs."""

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
import pytest
import yaml

from runtime import DPPolicy, tl, torch
from runtime.core.compiled.choice import IS_COMPILED
from runtime.core.config.config_file import default_file
from runtime.device.rank.rank_state import running_rank
from runtime.wire.environment import CCL_TRACE
from sip_node.chip.exchanges import learned_exchange
from tests.support.repeated_launches import PES, ROWS, Program, compared, own_start, tensor
from tests.support.topologies import variant_text

dist = torch.distributed

pytestmark = pytest.mark.skipif(not IS_COMPILED, reason="launches are repeated by the core in C")


@pytest.fixture(params=["records", "no-records"])
def record(request: pytest.FixtureRequest) -> bool:
    return request.param == "records"


def looped(
    times: int,
    between: Callable[[int], object] = lambda _: None,
    *,
    count: int = PES * 24,
    placed: DPPolicy = ROWS,
) -> Program:
    """A program of equal all-reduces, and what each rank does behind each of them."""

    def program() -> Sequence[torch.Tensor]:
        dist.init_process_group("ahbm")
        x = tensor(placed, count, dist.get_rank())
        for turn in range(times):
            dist.all_reduce(x)
            between(turn)
        torch.ahbm.synchronize()
        return (x,)

    return program


def doubled(x: tl.Pointer, size: int) -> None:
    tl.store(own_start(x, size), tl.load(own_start(x, size), size) * 2)


def waited(_: int) -> None:
    torch.ahbm.synchronize()


def awaited() -> None:
    """Wait for all so far, but not for the answers to earlier commands one by one."""
    event = torch.ahbm.Event()
    event.record()
    event.synchronize()


def ccl_text(**defaults: int | str) -> str:
    content = yaml.safe_load(default_file("ccl.yaml").read_text(encoding="utf-8"))
    content["defaults"] |= defaults
    return yaml.safe_dump(content)


@pytest.mark.parametrize("sips", [1, 2, 4])
def test_a_collective_is_repeated_once_it_begins_as_an_earlier_one(
    monkeypatch: pytest.MonkeyPatch, sips: int, *, record: bool
) -> None:
    # The first one begins before any credit is on its way.
    run = compared(monkeypatch, looped(6, waited), sips=sips, record=record)
    assert run.done.repeated_kernels >= 4 * PES * sips


def test_a_collective_is_repeated_while_credits_and_answers_are_on_their_way(
    monkeypatch: pytest.MonkeyPatch, *, record: bool
) -> None:
    run = compared(monkeypatch, looped(30), sips=2, record=record)
    assert run.done.repeated_kernels >= 20 * PES * 2


def test_a_collective_is_repeated_with_other_slots_of_its_rings(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Three slots, of which each call takes one.
    ccl = ccl_text(n_slots=3, slot_size=1024)
    run = compared(monkeypatch, looped(8, waited), sips=2, ccl=ccl)
    assert run.done.repeated_kernels >= 5 * PES * 2


@pytest.mark.parametrize("data", [True, False], ids=["data", "no-data"])
def test_collectives_that_need_more_memory_than_there_is_are_simulated(
    monkeypatch: pytest.MonkeyPatch, *, data: bool
) -> None:
    monkeypatch.setattr(learned_exchange, "MOST_BYTES", 4000)
    run = compared(monkeypatch, looped(4, waited), sips=2, data=data)
    assert run.done.repeated_kernels == 0


@pytest.mark.nightly
def test_messages_that_stay_in_their_slots_are_repeated_from_the_same_slots(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Messages of two slots stay in place unless they wrap round the end of a ring of 16 slots, of
    # which each call takes 30.
    ccl = ccl_text(algorithm="ring", n_slots=16, slot_size=256)
    cube = DPPolicy(cube="row_wise", pe="row_wise", num_cubes=1)
    program = looped(12, waited, count=10_240, placed=cube)
    run = compared(monkeypatch, program, sips=4, ccl=ccl, topology=variant_text())
    assert run.done.repeated_kernels > 0


def test_collectives_on_other_tensors_are_repeated_with_their_values(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def program() -> Sequence[torch.Tensor]:
        dist.init_process_group("ahbm")
        each = [tensor(first=dist.get_rank() + turn) for turn in range(6)]
        torch.ahbm.synchronize()
        for x in each:
            dist.all_reduce(x)
            torch.ahbm.synchronize()
        return each

    assert compared(monkeypatch, program, sips=2).done.repeated_kernels > 0


def test_collectives_of_other_operations_have_templates_of_their_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    operations = (dist.ReduceOp.SUM, dist.ReduceOp.MAX, dist.ReduceOp.MIN)

    def program() -> Sequence[torch.Tensor]:
        dist.init_process_group("ahbm")
        x, y = (tensor(first=first + dist.get_rank()) for first in (0, 5))
        for turn in range(12):
            dist.all_reduce(x if turn % 2 else y, operations[turn % 3])
            torch.ahbm.synchronize()
        return x, y

    assert compared(monkeypatch, program, sips=2).done.repeated_kernels > 0


def test_a_collective_that_sips_begin_and_end_at_different_times_is_repeated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Of three SIPs one ends earlier than the others, not the same each time.
    ccl, program = ccl_text(algorithm="ring"), looped(20, waited, count=PES * 96)
    run = compared(monkeypatch, program, sips=3, record=True, ccl=ccl)
    begins = [
        [each.start_ps for each in run.records[sip] if each.engine == "io_cpu"] for sip in range(3)
    ]
    assert len({tuple(np.subtract(each, min(each))) for each in zip(*begins, strict=True)}) > 2
    assert run.done.repeated_kernels >= 6 * PES * 3


def test_a_collective_depends_on_how_far_apart_it_begins_on_two_sips(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def between(turn: int) -> None:
        torch.ahbm.synchronize()
        running_rank().device.compute("host", 2_000 * (1 + turn % 3 * dist.get_rank()))

    run = compared(monkeypatch, looped(15, between), sips=2, record=True)
    assert run.done.repeated_kernels >= 8 * PES * 2


def test_a_sip_that_is_far_ahead_is_not_held_until_others_begin(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def program() -> Sequence[torch.Tensor]:
        dist.init_process_group("ahbm")
        x = tensor(first=dist.get_rank(), count=PES * 1024)
        for turn in range(12):
            # The root has sent all long before the last of them has received it.
            dist.broadcast(x, turn // 6)
        return (x,)

    run = compared(monkeypatch, program, sips=3, record=True)
    assert run.done.repeated_kernels == 0


def test_a_collective_that_ranks_begin_at_different_times_is_simulated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def between(turn: int) -> None:
        torch.ahbm.synchronize()
        running_rank().device.compute("host", 50_000 * (1 + turn * dist.get_rank()))

    assert compared(monkeypatch, looped(6, between), sips=2).done.repeated_kernels == 0


def test_a_collective_beside_a_kernel_is_simulated(monkeypatch: pytest.MonkeyPatch) -> None:
    def program() -> Sequence[torch.Tensor]:
        dist.init_process_group("ahbm")
        x, y = tensor(first=dist.get_rank()), tensor(count=PES * 24 * 8)
        torch.ahbm.synchronize()
        for _ in range(6):
            work = dist.all_reduce(x, async_op=True)
            y.copy_(y + 1)
            assert work is not None
            work.wait()
            torch.ahbm.synchronize()
        return x, y

    assert compared(monkeypatch, program, sips=2).done.repeated_kernels == 0


def test_a_rank_that_waits_for_an_answer_goes_on_beside_a_collective(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def program() -> Sequence[torch.Tensor]:
        dist.init_process_group("ahbm")
        x, y = tensor(first=dist.get_rank()), tensor(count=PES * 24 * 8)
        for turn in range(10):
            awaited()
            event = torch.ahbm.Event()
            event.record()
            work = dist.all_reduce(x, async_op=True)
            if turn % 2:
                event.synchronize()
                torch.launch("doubled", doubled, y, 24 * 8)
            assert work is not None
            work.wait()
        return x, y

    run = compared(monkeypatch, program, sips=2, record=True)
    assert run.done.repeated_kernels >= 3 * PES * 2


def test_a_collective_depends_on_where_answers_are_when_it_begins(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def between(turn: int) -> None:
        awaited()
        # The answer of the event passes the links while the host computes.
        torch.ahbm.Event().record()
        running_rank().device.compute("host", (20_000, 90_000, 20_001)[turn % 3])

    run = compared(monkeypatch, looped(14, between), sips=2, record=True)
    assert run.done.repeated_kernels > 0


def test_a_collective_depends_on_where_credits_are_when_it_begins(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def program() -> Sequence[torch.Tensor]:
        dist.init_process_group("ahbm")
        x, y = tensor(first=dist.get_rank()), tensor(count=PES * 40)
        for turn in range(24):
            # Behind a short one, credits are further on their way than behind a long one.
            dist.all_reduce(y if turn % 5 in (1, 2) else x)
        return x, y

    run = compared(monkeypatch, program, sips=2, record=True)
    assert run.done.repeated_kernels > 0


def test_a_collective_is_repeated_behind_another_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def program() -> Sequence[torch.Tensor]:
        dist.init_process_group("ahbm")
        x, long = tensor(first=dist.get_rank()), tensor(count=PES * 3 * 1024)
        for _ in range(12):
            dist.all_reduce(x)
            # By another algorithm, so through other queues: credits of the first are on their way.
            dist.all_reduce(long)
        return x, long

    assert compared(monkeypatch, program, sips=2, record=True).done.repeated_kernels > 0


def test_a_collective_is_repeated_without_data(monkeypatch: pytest.MonkeyPatch) -> None:
    run = compared(monkeypatch, looped(6, waited), sips=2, data=False)
    assert run.done.repeated_kernels >= 4 * PES * 2


def test_a_trace_of_slots_has_all_of_them(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(CCL_TRACE, "1")
    run = compared(monkeypatch, looped(4, waited), sips=2)
    capsys.readouterr()
    assert run.done.repeated_kernels == 0
    assert len(run.transfers) == 4 * 2 * PES * 2


def test_equal_collectives_last_equally_long_where_they_are_repeated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = compared(monkeypatch, looped(8, waited), sips=2)
    begins = [each.start_ps for each in run.records[0] if each.engine == "io_cpu"]
    steps = {int(second - first) for first, second in pairwise(begins)}
    assert len(steps) <= 2
    assert np.isfinite(list(steps)).all()
