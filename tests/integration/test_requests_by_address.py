"""Requests of the host name their target by physical address."""

from collections.abc import Callable

import pytest

from runtime.core.errors import PhysAddrError
from runtime.core.requests import MemoryReadMsg, MemoryWriteMsg, PeDmaMsg, Request
from runtime.device.rank.rank_state import RankState, running_rank
from tests.support.topologies import variant_text
from tests.support.world import simulate

ONE_CUBE = variant_text(sip__cube_mesh={"w": 1, "h": 1})


def written_and_read(factory: str, *place: int) -> bytes:
    def program(_rank: int) -> bytes:
        rank = running_rank()
        address = getattr(rank.addresses, factory)(*place)
        rank.device.submit([MemoryWriteMsg(address, 3, b"abc")], "a write")
        [found] = rank.device.wait(
            rank.device.submit([MemoryReadMsg(address, 3)], "a read")
        ).results
        return found

    return simulate(program, 1, topology=ONE_CUBE).returned[0]


@pytest.mark.parametrize(
    ("factory", "place"),
    [
        ("pe_hbm_addr", (0, 0, 7, 300)),
        ("pe_tcm_addr", (0, 0, 7, 300)),
        ("cube_sram_addr", (0, 0, 300)),
    ],
)
def test_every_memory_returns_the_bytes_written(factory: str, place: tuple[int, ...]) -> None:
    assert written_and_read(factory, *place) == b"abc"


@pytest.mark.parametrize(
    ("factory", "place"),
    [
        ("pe_ipcq_addr", (0, 0, 1, 0)),
        ("pe_scratchpad_addr", (0, 0, 1, 0)),
        ("pe_regfile_addr", (0, 0, 1, 0)),
        ("cube_mcpu_addr", (0, 0, 0)),
    ],
)
def test_a_resource_that_is_no_memory_is_refused_by_its_name(
    factory: str, place: tuple[int, ...]
) -> None:
    with pytest.raises(
        PhysAddrError,
        match=f"{factory.split('_')[1]} is not a memory that packets reach; hbm, tcm and sram are",
    ):
        written_and_read(factory, *place)


@pytest.mark.parametrize(
    "request_of",
    [lambda at: MemoryWriteMsg(at, 3, b"abc"), lambda at: MemoryReadMsg(at, 3)],
    ids=["write", "read"],
)
def test_a_request_that_reaches_the_next_slice_is_refused(
    request_of: Callable[[int], MemoryWriteMsg | MemoryReadMsg],
) -> None:
    def program(_rank: int) -> None:
        rank = running_rank()
        last = rank.addresses.pe_hbm_addr(0, 0, 1, 0) - 1
        rank.device.wait(rank.device.submit([request_of(last)], "a request over the end"))

    with pytest.raises(PhysAddrError, match="3 bytes from there run past the end of the memory"):
        simulate(program, 1, topology=ONE_CUBE)


def carried_out(request_of: Callable[[RankState], Request]) -> None:
    def program(_rank: int) -> None:
        rank = running_rank()
        rank.device.wait(rank.device.submit([request_of(rank)], "a request"))

    simulate(program, 1, topology=ONE_CUBE)


def test_a_request_moves_at_least_one_byte() -> None:
    def read(rank: RankState, nbytes: int) -> MemoryReadMsg:
        return MemoryReadMsg(rank.addresses.pe_hbm_addr(0, 0, 0, 0), nbytes)

    carried_out(lambda rank: read(rank, 1))
    with pytest.raises(ValueError, match="a request moves at least one byte"):
        carried_out(lambda rank: read(rank, 0))


@pytest.mark.parametrize(("beyond", "is_refused"), [(-1, False), (0, False), (1, True)])
def test_a_copy_of_a_pe_stays_in_its_tcm(beyond: int, is_refused: bool) -> None:
    def copy(rank: RankState) -> PeDmaMsg:
        offset = rank.topology.tcm_bytes - 64 + beyond
        return PeDmaMsg(0, 0, "write", rank.addresses.pe_hbm_addr(0, 0, 0, 0), 64, offset)

    if not is_refused:
        carried_out(copy)
        return
    with pytest.raises(ValueError, match="it leaves the TCM, which has 16,777,216 bytes"):
        carried_out(copy)
