"""Blocks of a launch that is repeated are found in the extents of its tensors."""

from runtime.core.run_tables import BLOCKS
from sip_node.chip.records.kept_calls import IN_MEMORY, IN_TCM, KeptCalls


def _kept(*blocks: tuple[int, int]) -> KeptCalls:
    rows = [BLOCKS.packer.pack(0, 0, place, address, 4, 0, 0, 0) for place, address in blocks]
    return KeptCalls(b"", b"".join(rows), first=0, begun=1)


def test_a_block_is_in_the_last_extent_that_begins_at_or_before_it() -> None:
    kept = _kept((IN_MEMORY, 4096), (IN_MEMORY, 4100), (IN_MEMORY, 8191), (IN_MEMORY, 64))
    # The extents are in the order of their use, which is not that of their addresses.
    assert kept.extents([8192, 4096, 0]) == [1, 1, 1, 2]


def test_a_value_of_a_kernel_is_in_no_extent_and_does_not_move() -> None:
    assert _kept((IN_TCM, 4096), (IN_MEMORY, 4096)).extents([4096]) == [-1, 0]
    # As the column of the table has it, which is a flag.
    assert (IN_TCM, IN_MEMORY) == (False, True)
