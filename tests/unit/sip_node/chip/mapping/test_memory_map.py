import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.core.errors import PhysAddrError
from runtime.model.addresses import AddressMap
from runtime.model.graph import ChipGraph
from sip_node.chip.mapping.memory_map import MemoryMap
from tests.support.topologies import small

TOPOLOGY = small()
ADDRESSES, GRAPH = AddressMap(TOPOLOGY), ChipGraph(TOPOLOGY)
PES = st.tuples(st.integers(0, 1), st.integers(0, 3), st.integers(0, 3))


@given(
    st.lists(st.tuples(PES, st.sampled_from(["hbm", "tcm", "sram"]), st.floats(0, 1)), max_size=9)
)
def test_every_byte_of_a_memory_is_found_at_its_node(places) -> None:
    memories = MemoryMap(ADDRESSES, GRAPH)
    for (sip, cube, pe), kind, part in places:
        if kind == "hbm":
            offset = round(part * (ADDRESSES.slice_bytes - 1))
            address, node = ADDRESSES.pe_hbm_addr(sip, cube, pe, offset), GRAPH.hbm(cube, pe)
        elif kind == "tcm":
            offset = round(part * (ADDRESSES.tcm_bytes - 1))
            address, node = ADDRESSES.pe_tcm_addr(sip, cube, pe, offset), GRAPH.pe(cube, pe)
        else:
            offset = round(part * (ADDRESSES.sram_bytes - 1))
            address, node = ADDRESSES.cube_sram_addr(sip, cube, offset), GRAPH.sram(cube)
        assert memories.locate(address) == (sip, node)


def test_registers_beside_a_memory_are_refused_after_it_was_found() -> None:
    memories = MemoryMap(ADDRESSES, GRAPH)
    tcm = ADDRESSES.pe_tcm_addr(0, 0, 0, 0)
    assert memories.locate(tcm) == (0, GRAPH.pe(0, 0))
    with pytest.raises(PhysAddrError, match="regfile is not a memory that packets reach"):
        memories.locate(ADDRESSES.pe_regfile_addr(0, 0, 0, 0))
    with pytest.raises(PhysAddrError, match="reserved"):
        memories.locate(tcm + ADDRESSES.tcm_bytes)
    assert memories.locate(tcm + ADDRESSES.tcm_bytes - 1) == (0, GRAPH.pe(0, 0))
