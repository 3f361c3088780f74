"""The record of an operation of the vector engine."""

from runtime.core.coordinates import PeCoordinates
from runtime.core.trace import Operand
from sip_node.chip.pe.compute.vector_stream import vector_record


def test_a_record_has_the_block_of_its_result():
    source, result = Operand(64, (4, 2), "f32"), Operand(128, (2, 2), "f32", strides=(4, 1))
    at = PeCoordinates(0, 3, 5)
    record = vector_record(at, "sum", (10, 25), (source, 2.0), result, 7, axis=0)
    assert (record.engine, record.name, record.cube, record.pe) == ("pe_math", "sum", 3, 5)
    assert (record.start_ps, record.end_ps, record.checksum, record.axis) == (10, 25, 7, 0)
    # Four elements of 4 bytes, with a gap between the rows.
    assert (record.address, record.nbytes, record.strides) == (128, 16, (4, 1))
    assert record.inputs == (source, 2.0)
