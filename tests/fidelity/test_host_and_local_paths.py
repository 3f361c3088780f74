"""Uncontended accesses of a PE to its own HBM and of the host to HBM: exactly the closed form."""

import pytest

from runtime import torch
from runtime.core import dtypes
from runtime.core.requests import MemoryReadMsg, MemoryWriteMsg, Request
from runtime.core.trace import OpRecord
from runtime.device.rank.rank_state import running_rank
from runtime.language import tl
from runtime.language.value import Pointer
from runtime.model.addresses import AddressMap
from runtime.model.placement import ONE_PE
from runtime.model.topology import parse_topology
from tests.support.closed_form import (
    CUBE_TO_IO,
    HOST_TO_IO,
    IO_TO_CUBE,
    IO_TO_HOST,
    TO_NEXT_CUBE,
    TO_XBAR,
    XBAR_TO_HBM,
    XBAR_TO_PE,
    XBAR_TO_ROUTER,
    mesh,
    route_times,
)
from tests.support.topologies import variant_text
from tests.support.world import simulate

pytestmark = pytest.mark.fidelity

ONE_CUBE = variant_text(sip__cube_mesh={"w": 1, "h": 1})
TWO_CUBES = variant_text(sip__cube_mesh={"w": 1, "h": 2})
ODD_NUMBERS = variant_text(
    sip__cube_mesh={"w": 1, "h": 2},
    ns_per_mm=0.0137,
    hbm__pc_bw_gbs=29.1,
    xbar={"overhead_ns": 1.7, "to_hbm_bw_gbs": 219.3},
    cube__hbm_ctrl__overhead_ns=0.4,
    cube__hbm_ctrl__latency_ns=31.3,
    cube__hbm_ctrl__efficiency=0.77,
    pe__dma__overhead_ns=1.3,
    sip__io_chiplet__pcie_ep={"overhead_ns": 87.3, "bw_gbs": 31.7},
    ucie={"overhead_ns": 7.3, "bw_gbs": 96.7},
)
SIZES = (16, 256, 1000, 2048, 4096, 10_000, 65_536)


def own_access(nbytes: int, text: str) -> dict[str, OpRecord]:
    """A load and a store of PE 0 at the start of its own slice: the DMA records by name."""

    def program(rank: int) -> None:
        tensor = torch.empty(nbytes, dtype=torch.int8, dp=ONE_PE)

        def kernel(pointer: Pointer) -> None:
            tl.store(pointer, tl.load(pointer, nbytes))

        torch.launch("copy", kernel, tensor)
        torch.ahbm.synchronize()

    return {
        record.name: record
        for _, record in simulate(program, 1, topology=text, data=False).of("pe_dma")
    }


def host_access(request: Request, text: str) -> OpRecord:
    def program(rank: int) -> None:
        device = running_rank().device
        device.wait(device.submit([request], "a request of the host"))

    [(_, record)] = simulate(program, 1, topology=text, data=False).of("host")
    return record


def took_ps(record: OpRecord) -> int:
    return record.end_ps - record.start_ps


def test_a_load_of_4_kib_from_local_hbm_takes_78_ns() -> None:
    # DMA 2 ns; crossbar 2 ns; the 16 B of the request at 256 GB/s, rounded up, 0.063 ns; the
    # latency of HBM 52 ns; 4096 B / 204.8 GB/s = 20 ns; crossbar 2 ns. No router, and no wire.
    parts_ps = (2_000, 2_000, 63, 52_000, 20_000, 2_000)
    assert took_ps(own_access(4096, ONE_CUBE)["load"]) == sum(parts_ps)


@pytest.mark.parametrize("text", [ONE_CUBE, ODD_NUMBERS], ids=["default", "odd numbers"])
@pytest.mark.parametrize("nbytes", SIZES[::2])
def test_loads_and_stores_of_local_hbm_take_the_closed_form(nbytes: int, text: str) -> None:
    form, there, back = route_times(text), TO_XBAR + XBAR_TO_HBM, TO_XBAR + XBAR_TO_PE
    records, starts = own_access(nbytes, text), form.commands
    load_ps = form.control_ps(there) + form.bulk_ps(back, nbytes)
    store_ps = form.bulk_ps(there, nbytes) + form.control_ps(back)
    assert took_ps(records["load"]) == starts.read_start_ps + load_ps
    assert took_ps(records["store"]) == starts.write_start_ps + store_ps


TO_CUBE_1 = HOST_TO_IO + IO_TO_CUBE + mesh(7) + TO_XBAR + XBAR_TO_HBM
"""r5c2 to r0c0, the router of PE 0, and its slice."""
FROM_CUBE_1 = TO_XBAR + XBAR_TO_ROUTER + mesh(7) + CUBE_TO_IO + IO_TO_HOST


@pytest.mark.parametrize("text", [TWO_CUBES, ODD_NUMBERS], ids=["default", "odd numbers"])
@pytest.mark.parametrize("nbytes", SIZES[::2])
def test_the_host_writes_and_reads_hbm_in_the_closed_form(nbytes: int, text: str) -> None:
    form, address = route_times(text), _slice_of_pe_0(text, cube=1)
    writing = host_access(MemoryWriteMsg(address, nbytes, b""), text)
    assert took_ps(writing) == form.bulk_ps(TO_CUBE_1, nbytes) + form.control_ps(FROM_CUBE_1)
    reading = host_access(MemoryReadMsg(address, nbytes), text)
    assert took_ps(reading) == form.control_ps(TO_CUBE_1) + form.bulk_ps(FROM_CUBE_1, nbytes)


def test_a_cube_behind_another_costs_the_route_through_it() -> None:
    text, nbytes = TWO_CUBES, 1000
    writing = host_access(MemoryWriteMsg(_slice_of_pe_0(text, cube=0), nbytes, b""), text)
    form = route_times(text)
    # In cube 1 from the south to the north port around the stack, r5c2 - r0c2, seven hops; also
    # seven hops to r0c0 in cube 0.
    there = HOST_TO_IO + IO_TO_CUBE + mesh(7) + TO_NEXT_CUBE + mesh(7) + TO_XBAR + XBAR_TO_HBM
    back = TO_XBAR + XBAR_TO_ROUTER + mesh(7) + TO_NEXT_CUBE + mesh(7) + CUBE_TO_IO + IO_TO_HOST
    assert took_ps(writing) == form.bulk_ps(there, nbytes) + form.control_ps(back)


def test_the_host_path_is_as_fast_as_pcie_for_large_transfers() -> None:
    text, nbytes = ONE_CUBE, 1 << 20
    writing = host_access(MemoryWriteMsg(_slice_of_pe_0(text, cube=0), nbytes, b""), text)
    gbs = nbytes / took_ps(writing) * 1000
    assert 0.98 * 64 < gbs < 64


def _slice_of_pe_0(text: str, cube: int) -> int:
    return AddressMap(parse_topology(text, "topology.yaml", 1)).pe_hbm_addr(0, cube, 0, 0)


def test_elements_of_every_type_move_as_bytes() -> None:
    times = set()
    for dtype in (dtypes.float32, dtypes.bfloat16):

        def program(rank: int, dtype: dtypes.DType = dtype) -> None:
            tensor = torch.empty(4096 // dtype.itemsize, dtype=dtype)
            torch.launch("load", lambda pointer: tl.load(pointer, 4096 // dtype.itemsize), tensor)
            torch.ahbm.synchronize()

        times |= {
            took_ps(record) for _, record in simulate(program, 1, topology=ONE_CUBE).of("pe_dma")
        }
    assert times == {78_063}
