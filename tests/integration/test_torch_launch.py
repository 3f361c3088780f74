"""Kernels on a simulated chip: which PEs run a launch, and the errors of a kernel."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from runtime import DPPolicy, tl, torch
from runtime.core.device import Handle
from runtime.core.errors import KernelError, PageFaultError
from runtime.language.value import Pointer
from tests.support.joined import ccl_text
from tests.support.topologies import variant_text
from tests.support.world import simulate

TOPOLOGY = variant_text(
    sip__cube_mesh={"w": 2, "h": 1},
    cube__pe_layout__pe_per_corner=1,
    cube__pe_layout__corners=["NW", "SE"],
)
"""Two cubes with two PEs."""
EVERYWHERE = DPPolicy(cube="row_wise", pe="row_wise")


def on_a_rank(program: Callable[[], Any], ccl: str | None = None) -> Any:
    return simulate(lambda rank: program(), 1, topology=TOPOLOGY, ccl=ccl).returned[0]


def launched(kernel: Callable[..., object], *arguments: object, size: int = 16) -> np.ndarray:
    """A vector 0, 1, 2 ... on PE 0 after `kernel(pointer, *arguments)`."""

    def program() -> np.ndarray:
        tensor = torch.from_numpy(np.arange(size, dtype=np.float32))
        torch.launch("kernel under test", kernel, tensor, *arguments)
        return tensor.numpy()

    return on_a_rank(program)


def complaint(
    kernel: Callable[..., object], *arguments: object, error: type[Exception] = KernelError
) -> str:
    with pytest.raises(error) as raised:
        launched(kernel, *arguments)
    return str(raised.value)


def here(kernel: Callable[..., object], line: int = 0) -> str:
    """The beginning of an error in `kernel`, on the given line after its first line."""
    code = kernel.__code__
    place = f"{Path(code.co_filename).relative_to(Path.cwd())}:{code.co_firstlineno + line}"
    return f"kernel 'kernel under test' on sip 0 cube 0 pe 0 at {place}: "


def test_a_kernel_runs_on_every_pe_that_holds_a_shard() -> None:
    def kernel(at: Pointer) -> None:
        program = tl.program_id(1) * tl.num_programs(0) + tl.program_id(0)
        tl.store(at + 2 * program, tl.load(at + 2 * program, 2) * 0 + program)

    def program() -> list[float]:
        tensor = torch.zeros(8, dp=EVERYWHERE)
        torch.launch("number", kernel, tensor)
        return tensor.numpy().tolist()

    assert on_a_rank(program) == [0, 0, 1, 1, 2, 2, 3, 3]


def test_the_size_of_a_launch_is_that_of_the_pes_that_run_it() -> None:
    def kernel(at: Pointer) -> None:
        size = tl.num_programs(0) * 10 + tl.num_programs(1)
        tl.store(at, tl.load(at, 1) * 0 + size)

    def size_on(placement: DPPolicy) -> float:
        def program() -> float:
            tensor = torch.zeros(1, dp=placement)
            torch.launch("size", kernel, tensor)
            return float(tensor.numpy()[0])

        return on_a_rank(program)

    placements = [
        DPPolicy(),
        DPPolicy(num_cubes=1),
        DPPolicy(num_pes=1),
        DPPolicy(num_cubes=1, num_pes=1),
    ]
    assert [size_on(placement) for placement in placements] == [22, 21, 12, 11]


def test_programs_of_one_launch_start_together() -> None:
    def program() -> None:
        torch.launch("nothing", lambda at: tl.load(at, 1), torch.zeros(4, dp=EVERYWHERE))
        torch.ahbm.synchronize()

    kernels = simulate(lambda rank: program(), 1, topology=TOPOLOGY).of("pe_cpu", "kernel nothing")
    assert len(kernels) == 4
    assert len({record.start_ps for _, record in kernels}) == 1


def test_a_pe_reads_the_shards_of_others_and_its_own_copy_first() -> None:
    def kernel(everything: Pointer, out: Pointer) -> None:
        mine = tl.program_id(1) * 2 + tl.program_id(0)
        tl.store(out + mine, tl.load(everything + 3 - mine, 1))

    def program() -> list[float]:
        source = torch.from_numpy(np.arange(4, dtype=np.float32), dp=EVERYWHERE)
        out = torch.zeros(4, dp=EVERYWHERE)
        torch.launch("reverse", kernel, source, out)
        return out.numpy().tolist()

    assert on_a_rank(program) == [3, 2, 1, 0]


def test_a_replicated_tensor_is_one_copy_a_pe() -> None:
    def kernel(at: Pointer) -> None:
        tl.store(at, tl.load(at, 1) + tl.program_id(0) + 10 * tl.program_id(1))

    def program() -> list[float]:
        tensor = torch.zeros(1, dp=DPPolicy())
        torch.launch("mark", kernel, tensor)
        return [float(part[0]) for _, _, part in tensor.copies()]

    assert on_a_rank(program) == [0, 1, 10, 11]


def test_launches_and_accesses_of_a_rank_take_effect_in_their_order() -> None:
    def program() -> list[float]:
        tensor = torch.ones(1)
        torch.launch("double", lambda at: tl.store(at, tl.load(at, 1) * 2), tensor)
        torch.launch("add three", lambda at: tl.store(at, tl.load(at, 1) + 3), tensor)
        first = float(tensor.numpy()[0])
        tensor.copy_(0)
        return [first, float(tensor.numpy()[0])]

    assert on_a_rank(program) == [5, 0]


def test_a_handle_has_the_time_of_a_launch_after_its_end() -> None:
    def program() -> tuple[bool, bool, Handle]:
        handle = torch.launch("load", lambda at: tl.load(at, 1), torch.zeros(1))
        pending = handle.done
        with pytest.raises(RuntimeError, match="the launch is not complete"):
            _ = handle.pe_exec_ps
        torch.ahbm.synchronize()
        return pending, handle.done, handle

    pending, done, handle = on_a_rank(program)
    assert (pending, done) == (False, True)
    assert handle.total_ps == handle.pe_exec_ps + handle.network_ps + handle.queued_ps
    # It waits for the write and the mapping of its tensor.
    assert 0 < handle.pe_exec_ps < handle.network_ps
    assert handle.queued_ps > 0


def test_a_scalar_passes_through() -> None:
    kernel = lambda at, factor, start: tl.store(at + start, tl.load(at + start, 4) * factor)  # noqa: E731
    assert launched(kernel, 10.0, 4, size=8).tolist() == [0, 1, 2, 3, 40, 50, 60, 70]


def test_a_launch_without_a_tensor_is_refused() -> None:
    problem = (
        "launch of 'nowhere': a kernel runs where its tensors are, so one argument must be a tensor"
    )
    with pytest.raises(ValueError, match=problem):
        on_a_rank(lambda: torch.launch("nowhere", lambda n: None, 3))


def test_an_exception_of_a_kernel_ends_the_run() -> None:
    def kernel(at: Pointer) -> None:
        raise LookupError("not in this kernel")

    with pytest.raises(LookupError, match="not in this kernel"):
        launched(kernel)


def test_tl_outside_of_a_kernel_is_an_error_with_its_context() -> None:
    with pytest.raises(
        RuntimeError, match=re.escape("tl works inside a kernel only: start one with torch.launch")
    ):
        tl.program_id(0)


def test_a_page_fault_behind_a_tensor_names_tensor_pe_and_address() -> None:
    kernel = lambda at: tl.load(at + 20, 2)  # noqa: E731
    assert complaint(kernel, error=PageFaultError) == (
        f"page fault in {here(kernel)}8 bytes at virtual address 0x100000050 are not mapped "
        "(16 bytes past the end of tensor t1[16] at 0x100000000+64)"
    )


def test_a_page_fault_that_starts_inside_a_tensor_names_it() -> None:
    fault = complaint(lambda at: tl.store(at + 12, tl.load(at, 8)), error=PageFaultError)
    assert "32 bytes at virtual address 0x100000030 are not mapped" in fault
    assert "(it starts inside tensor t1[16] at 0x100000000+64 and runs past its end)" in fault


def test_a_page_fault_below_every_tensor_names_none() -> None:
    assert "no tensor is mapped below it" in complaint(
        lambda at: tl.load(at - 4096, 1), error=PageFaultError
    )


def test_a_tensor_that_the_launch_does_not_name_is_not_mapped() -> None:
    def program() -> None:
        hidden = torch.empty(4)
        torch.launch(
            "peek",
            lambda at, other: tl.load(Pointer(other, tl.float32), 4),
            torch.zeros(4),
            hidden.address,
        )
        torch.ahbm.synchronize()

    with pytest.raises(PageFaultError, match="kernel 'peek'"):
        on_a_rank(program)


def test_values_fill_the_scratch_and_the_overflow_names_the_sizes() -> None:
    def kernel(at: Pointer) -> None:
        value = tl.load(at, 16)
        for _ in range(16):
            value = tl.cat([value, value])

    assert complaint(kernel) == (
        f"{here(kernel, 3)}kernel scratch is full: 1,048,512 of 1,048,576 bytes are in "
        "use and 1,048,576 more are needed; free values with `with tl.scratch():`"
    )


def test_a_scratch_scope_releases_its_bytes() -> None:
    def kernel(at: Pointer) -> None:
        for _ in range(3):
            with tl.scratch():
                value = tl.load(at, 1 << 17)
                tl.store(at, value + 1)

    def program() -> float:
        tensor = torch.zeros(1 << 17, dp=DPPolicy(num_cubes=1, num_pes=1))
        torch.launch("three rounds of a mebibyte", kernel, tensor)
        return float(tensor.numpy().sum())

    assert on_a_rank(program) == 3 << 17


@pytest.mark.parametrize("axis", [2, -1])
def test_programs_have_two_axes(axis: int) -> None:
    for kernel in (lambda at: tl.program_id(axis), lambda at: tl.num_programs(axis)):
        assert (
            complaint(kernel)
            == f"{here(kernel)}axis {axis}: programs have axis 0 (PE in its cube) and axis 1 (cube)"
        )


def test_a_value_cannot_be_stored_through_a_pointer_of_another_type() -> None:
    def kernel(at: Pointer) -> None:
        tl.store(Pointer(int(at), tl.int32), tl.load(at, 2))

    assert complaint(kernel).startswith(f"{here(kernel, 1)}store of f32 through a pointer to i32")


def test_operands_of_different_types_are_refused() -> None:
    def kernel(at: Pointer) -> None:
        tl.load(at, 2) + tl.load(Pointer(int(at), tl.int32), 2)

    assert complaint(kernel).startswith(
        f"{here(kernel, 1)}add: operands have types f32, i32; they must be equal"
    )


def test_shapes_that_do_not_broadcast_are_refused() -> None:
    kernel = lambda at: tl.load(at, 2) * tl.load(at, 3)  # noqa: E731
    assert complaint(kernel).startswith(f"{here(kernel)}mul: shapes (2,) and (3,) do not broadcast")


def test_a_queue_that_is_not_installed_names_those_that_are() -> None:
    files = ccl_text("tests.support.joined.pair_0_0_1_0")

    def program() -> None:
        torch.distributed.init_process_group("ahbm")
        torch.launch("shout", lambda at: tl.send("N", tl.load(at, 1)), torch.zeros(1))
        torch.ahbm.synchronize()

    with pytest.raises(KernelError, match=r"no queue in direction 'N' is installed here; known: E"):
        on_a_rank(program, files)


def test_a_queue_before_any_group_is_not_there() -> None:
    kernel = lambda at: tl.recv("E", 1, tl.float32)  # noqa: E731
    assert complaint(kernel).startswith(
        f"{here(kernel)}no queue in direction 'E' is installed here"
    )


def test_a_receive_of_another_size_than_was_sent_names_both_and_the_sender() -> None:
    def kernel(at: Pointer) -> None:
        if tl.program_id(1) == 0:
            tl.send("E", tl.load(at, 8))
        else:
            tl.recv("W", 4, tl.float32)

    def program() -> None:
        torch.distributed.init_process_group("ahbm")
        torch.launch("mismatched sizes", kernel, torch.zeros(8, dp=DPPolicy(num_pes=1)))
        torch.ahbm.synchronize()

    with pytest.raises(KernelError) as raised:
        on_a_rank(program, ccl_text("tests.support.joined.pair_0_0_1_0"))
    problem = (
        "recv from W expects 16 bytes of f32 in this slot, 32 bytes of f32 came from sip 0 "
        "cube 0 pe 0"
    )
    assert (raised.value.kernel, raised.value.coordinates, raised.value.problem) == (
        "mismatched sizes",
        (0, 1, 0),
        problem,
    )
    assert raised.value.line.endswith(f"test_torch_launch.py:{kernel.__code__.co_firstlineno + 4}")


def test_an_empty_load_beside_a_full_one_loses_nothing() -> None:
    def kernel(at: Pointer) -> None:
        tl.store(at, tl.cat([tl.load(at, 0), tl.load(at + 8, 8)]))

    assert launched(kernel).tolist() == [*range(8, 16), *range(8, 16)]


def test_arithmetic_takes_more_time_for_more_elements() -> None:
    def run_ps(size: int) -> int:
        def program() -> int:
            tensor = torch.zeros(4096)
            handle = torch.launch("add", lambda at: tl.load(at, 4096)[:size] + 1, tensor)
            torch.ahbm.synchronize()
            return handle.pe_exec_ps

        return on_a_rank(program)

    # 4096 instead of 128 elements: 31 more vectors of 128 lanes. Each takes 1 ns at 1 GHz, and its
    # 512 B at the same time 1 ns at each port of 512 GB/s.
    assert run_ps(4096) - run_ps(128) == 31_000


def _copy(source: Pointer, target: Pointer) -> None:
    tl.store(target, tl.load(source, 2))


@pytest.mark.parametrize(
    ("launch", "error", "message"),
    [
        (
            lambda x: torch.launch(_copy, x, x),
            TypeError,
            "torch.launch(name, kernel, *arguments): argument 'name' must be str, not function",
        ),
        (
            lambda x: torch.launch("copy", x, _copy),
            TypeError,
            "launch of 'copy': argument 'kernel' must be a function, not Tensor",
        ),
        (
            lambda x: torch.launch("copy", _copy, x),
            TypeError,
            (
                "launch of 'copy' with 1 argument: _copy(source, target): missing a "
                "required argument: "
                "'target'"
            ),
        ),
        (
            lambda x: torch.launch("copy", _copy, x, x, 2),
            TypeError,
            (
                "launch of 'copy' with 3 arguments: _copy(source, target): too many positional "
                "arguments"
            ),
        ),
        (
            lambda x: torch.launch("copy", _copy, [x], x),
            TypeError,
            "launch of 'copy': argument 0 is a list with a tensor in it; pass tensors one by one",
        ),
        (
            lambda x: torch.launch("copy", _copy, np.zeros(2), np.zeros(2)),
            ValueError,
            (
                "launch of 'copy': a kernel runs where its tensors are, so one argument must be a "
                "tensor; make one with torch.from_numpy(array)"
            ),
        ),
    ],
)
def test_a_launch_that_cannot_run_is_refused_on_the_host(
    launch: Callable[[torch.Tensor], object], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=f"^{re.escape(message)}$"):
        on_a_rank(lambda: launch(torch.zeros(2)))
