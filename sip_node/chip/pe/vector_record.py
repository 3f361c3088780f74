"""Records of the vector engine of a PE and of its ports, in the op log."""

from collections.abc import Sequence

from runtime.core.coordinates import PeCoordinates
from runtime.core.trace import Operand, OpRecord
from sip_node.chip.strided_block import nbytes_of


def vector_record(
    at: PeCoordinates,
    name: str,
    span_ps: tuple[int, int],
    inputs: Sequence[Operand | float],
    result: Operand,
    checksum: int,
    *,
    engine: str = "pe_math",
    axis: int | None = None,
) -> OpRecord:
    """Operation `name` from the first to the second time of `span_ps`, with the result `result`,
    whose elements have the CRC-32 `checksum`.
    """
    start_ps, end_ps = span_ps
    return OpRecord(
        engine=engine,
        name=name,
        start_ps=start_ps,
        end_ps=end_ps,
        cube=at.cube,
        pe=at.pe,
        address=result.address,
        nbytes=nbytes_of(result),
        shape=result.shape,
        dtype=result.dtype,
        inputs=tuple(inputs),
        strides=result.strides,
        axis=axis,
        checksum=checksum,
    )
