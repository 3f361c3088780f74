"""The PEs of a launch store to different elements, or to replicas of their own."""

import re
from collections.abc import Callable

import numpy as np
import pytest

from runtime import DPPolicy, tl, torch
from runtime.core.errors import KernelError
from tests.support.joined import ccl_text
from tests.support.topologies import variant_text
from tests.support.world import simulate

TOPOLOGY = variant_text(
    sip__cube_mesh={"w": 2, "h": 1},
    cube__pe_layout__pe_per_corner=1,
    cube__pe_layout__corners=["NW", "NE"],
)
ROWS = DPPolicy(cube="row_wise", pe="row_wise")
COPIES = DPPolicy(cube="replicate", pe="replicate")
dist = torch.distributed


def result(program: Callable[[], np.ndarray], *, data: bool = True) -> np.ndarray:
    return simulate(lambda _rank: program(), 1, topology=TOPOLOGY, data=data).returned[0]


def refused(program: Callable[[], object], *, sips: int = 1, data: bool = True) -> str:
    """The message of the error, without the advice in it."""
    with pytest.raises(KernelError) as error:
        simulate(lambda _rank: program(), sips, topology=TOPOLOGY, data=data)
    return str(error.value).partition("; a kernel runs on every PE")[0]


def own_pe() -> int:
    return tl.program_id(1) * tl.num_programs(0) + tl.program_id(0)


def fill_all(x: tl.Pointer, numel: int) -> None:
    tl.store(x, tl.load(x, (numel,)) + 1)


def fill_rows(x: tl.Pointer, columns: int) -> None:
    tl.store(x, tl.load(x, (4, columns // 4), strides=(columns, 1)), strides=(columns, 1))


def number(x: tl.Pointer, numel: int) -> None:
    tl.store(x, tl.load(x, (numel,)) * 0 + own_pe())


@pytest.mark.parametrize("data", [True, False])
def test_pes_that_store_to_the_same_elements_are_refused(*, data: bool) -> None:
    def program() -> None:
        torch.launch("fill", fill_all, torch.zeros(16, 4, dp=ROWS), 64)
        torch.ahbm.synchronize()

    # The line of `tl.store` in `fill_all`.
    line = fill_all.__code__.co_firstlineno + 1
    text = refused(program, data=data)
    pes = re.fullmatch(
        rf"kernel 'fill' on (sip 0 cube \d pe \d) at \S+:{line}: stores to elements 0:16 of "
        r"tensor t1\[16, 4\], and so does (sip 0 cube \d pe \d) in the same launch",
        text,
    )
    assert pes is not None, text
    assert pes[1] != pes[2]


def test_the_error_advises_what_helps() -> None:
    with pytest.raises(KernelError) as error:
        result(lambda: launch_and_read(fill_all, torch.zeros(64, dp=ROWS), 64))
    for advice in ("tl.program_id", "replicate", "DPPolicy(num_cubes=1, num_pes=1)"):
        assert advice in str(error.value)


def launch_and_read(kernel: Callable[..., object], tensor: torch.Tensor, *args: int) -> np.ndarray:
    torch.launch("store", kernel, tensor, *args)
    return tensor.numpy()


def test_pes_that_store_to_replicas_of_their_own_are_not_refused_and_the_first_is_read() -> None:
    def program() -> list[np.ndarray]:
        tensor = torch.zeros(8, dp=COPIES)
        read = launch_and_read(number, tensor, 8)
        return [read, *(elements for _, _, elements in tensor.copies())]

    read, *copies = result(program)
    assert [elements.tolist() for elements in copies] == [[pe] * 8 for pe in range(4)]
    assert read.tolist() == copies[0].tolist()


def test_pes_that_share_a_replica_are_refused() -> None:
    def program() -> None:
        # One replica in each cube; the other tensor makes the kernel run on both its PEs.
        shared = torch.zeros(8, dp=DPPolicy(cube="replicate", num_pes=1))
        torch.launch("share", lambda x, _y: fill_all(x, 8), shared, torch.zeros(4, dp=ROWS))
        torch.ahbm.synchronize()

    assert re.search(
        r"on sip 0 cube (\d) pe \d at .* 0:8 of tensor t1\[8\], and so does sip 0 cube \1 pe \d",
        refused(program),
    )


def test_columns_of_a_matrix_on_one_pe_are_stored_by_all() -> None:
    def columns(x: tl.Pointer, y: tl.Pointer) -> None:
        tl.store(x + 4 * own_pe(), tl.load(y + 4 * own_pe(), (8, 4), strides=(16, 1)), (16, 1))

    def program() -> np.ndarray:
        matrix = np.arange(128, dtype=np.float32).reshape(8, 16)
        source, target = torch.from_numpy(matrix, dp=ROWS), torch.zeros(8, 16)
        torch.launch("columns", columns, target, source)
        return target.numpy()

    np.testing.assert_array_equal(result(program), np.arange(128, dtype=np.float32).reshape(8, 16))


def test_the_result_of_a_product_is_a_store() -> None:
    def product(a: tl.Pointer, out: tl.Pointer) -> None:
        left = tl.ref(a, (8, 8))
        tl.wait(tl.composite("gemm", left, left, out=tl.ref(out, (8, 8))))

    def program() -> None:
        torch.launch("product", product, torch.ones(8, 8, dp=ROWS), torch.zeros(8, 8))
        torch.ahbm.synchronize()

    assert "stores to elements 0:64 of tensor t2[8, 8]" in refused(program)


def test_a_receive_to_memory_is_a_store() -> None:
    def exchange(x: tl.Pointer) -> None:
        if tl.program_id(1) == 0:
            tl.send("E", tl.load(x, (4,)))
        else:
            tl.recv("W", (4,), torch.float32, dst_addr=x + 2)
        tl.store(x, tl.load(x, (3,)))

    def program() -> None:
        dist.init_process_group("ahbm", algorithm="intercube")
        tensor = torch.zeros(16, dp=DPPolicy(cube="row_wise", num_pes=1))
        torch.launch("exchange", exchange, tensor)
        torch.ahbm.synchronize()

    assert "stores to elements 2:3 of tensor t1[16]" in refused(program)


def test_two_launches_store_to_the_same_elements() -> None:
    def half(x: tl.Pointer, chosen: int) -> None:
        if own_pe() == chosen:
            fill_all(x, 64)

    def program() -> np.ndarray:
        tensor = torch.zeros(64, dp=ROWS)
        for chosen in range(4):
            torch.launch("half", half, tensor, chosen)
        return tensor.numpy()

    assert result(program).tolist() == [4.0] * 64


def handed_on(store: Callable[[tl.Pointer, int], None], *, behind: bool) -> Callable[..., None]:
    """A kernel of two PEs that store to one element in turn; `behind` a message through the PEs of
    the other SIP, or beside it.
    """

    def kernel(x: tl.Pointer, rank: int) -> None:
        pe, token = tl.program_id(0), tl.full(1, 1.0, tl.float32)
        if rank == 1 and pe == 0:
            tl.send("E", tl.recv("global_W", 1, tl.float32))
        elif rank == 1:
            tl.send("global_E", tl.recv("W", 1, tl.float32))
        elif pe == 0:
            store(x, 1)
            tl.send("global_E", token)
        else:
            if not behind:
                store(x, 2)
            tl.recv("global_W", 1, tl.float32)
            if behind:
                store(x, 2)

    return kernel


def _store(x: tl.Pointer, value: int) -> None:
    tl.store(x, tl.full(16, value, tl.float32))


def _store_in_flight(x: tl.Pointer, value: int) -> None:
    tl.wait(tl.store_async(x, tl.full(16, value, tl.float32)))


def _product(x: tl.Pointer, value: int) -> None:
    ones = tl.full((4, 4), value, tl.float32)
    tl.wait(tl.composite("gemm", ones, ones, tl.ref(x, (4, 4))))


def through_the_other_sip(kernel: Callable[..., None]) -> np.ndarray:
    def program(rank: int) -> np.ndarray:
        dist.init_process_group("ahbm")
        x = torch.zeros(16, dp=DPPolicy(pe="row_wise", num_cubes=1))
        torch.launch("handed_on", kernel, x, rank)
        return x.numpy()

    ccl = ccl_text("tests.support.joined.both_0_0_0_1")
    return simulate(program, 2, topology=TOPOLOGY, ccl=ccl).returned[0]


@pytest.mark.parametrize(("store", "last"), [(_store, 2), (_store_in_flight, 2), (_product, 16)])
def test_stores_behind_a_message_through_another_sip_are_legal_and_others_are_refused(
    store: Callable[[tl.Pointer, int], None], last: int
) -> None:
    kernel = handed_on(store, behind=True)
    assert through_the_other_sip(kernel).tolist() == [last] * 16
    with pytest.raises(KernelError, match="in the same launch"):
        through_the_other_sip(handed_on(store, behind=False))


@pytest.mark.parametrize("behind", [True, False])
def test_a_slot_kept_in_place_orders_the_sender_behind_its_release(*, behind: bool) -> None:
    def kernel(x: tl.Pointer) -> None:
        pe, token = tl.program_id(0), tl.full(1, 1.0, tl.float32)
        if pe == 0:
            # The third message needs the slot of the first one.
            for _ in range(3):
                tl.send("E", token)
            _store(x, 2)
            return
        buffer = tl.empty(1, tl.float32)
        kept = tl.recv_async("W", dst_addr=buffer, in_place=True).wait()
        if behind:
            _store(x, 1)
        tl.release(kept)
        if not behind:
            _store(x, 1)
        for _ in range(2):
            tl.recv("W", 1, tl.float32)

    def program(_rank: int) -> np.ndarray:
        dist.init_process_group("ahbm")
        x = torch.zeros(16, dp=DPPolicy(pe="row_wise", num_cubes=1))
        torch.launch("kept", kernel, x)
        return x.numpy()

    ccl = ccl_text("tests.support.joined.pair_0_0_0_1", n_slots=2)
    if behind:
        world = simulate(program, 1, topology=TOPOLOGY, ccl=ccl)
        assert world.returned[0].tolist() == [2] * 16
        return
    with pytest.raises(KernelError, match="in the same launch"):
        simulate(program, 1, topology=TOPOLOGY, ccl=ccl)
