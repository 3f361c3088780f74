"""The text of the operations of a run in C; see log_text.py.

Other threads of Python run while the text of a piece is made.
"""

import msgspec
from cpython.array cimport array

from coordinator.compiled.json_text cimport JsonText
from coordinator.compiled.op_records cimport PackedOperand, PackedRecord, take_operand, take_record
from coordinator.compiled.packed_values cimport (
    Cursor,
    Number,
    is_array,
    take_length,
    take_nothing,
    take_number,
    take_real,
)
from coordinator.compiled.total_order cimport Operation, TotalOrder

cdef enum:
    # About half a megabyte of text each.
    PIECE_OPERATIONS = 1024

cdef object encode = msgspec.json.Encoder().encode


cdef class LogText:
    """See log_text.py."""

    cdef TotalOrder order
    cdef dict flows

    def __init__(self, logs):
        self.order = TotalOrder(logs)
        self.flows = {}

    @property
    def lanes(self):
        """See log_text.py."""
        return self.order.lanes

    def pieces(self, array tid_of_lane):
        """See log_text.py."""
        cdef Py_ssize_t first = 0, end
        cdef JsonText lines = JsonText(), slices = JsonText()
        while first < self.order.count:
            end = min(first + PIECE_OPERATIONS, self.order.count)
            with nogil:
                self.add_piece(lines, slices, first, end, tid_of_lane.data.as_uints)
            yield lines.taken(), slices.taken()
            first = end

    cdef int add_piece(
        self,
        JsonText lines,
        JsonText slices,
        Py_ssize_t first,
        Py_ssize_t end,
        const unsigned int *tid_of_lane,
    ) except -1 nogil:
        """The text of the operations from `first` to `end` in the total order."""
        cdef Py_ssize_t index
        cdef Operation *operation
        cdef Cursor cursor
        cdef PackedRecord record
        cdef Number flow
        flow.is_negative = False
        for index in range(first, end):
            operation = &self.order.operations[index]
            cursor = operation.packed
            take_record(&cursor, &record)
            flow.magnitude = self.flow_number(record.flow)
            add_line(lines, operation, &record)
            add_slice(slices, operation, &record, tid_of_lane[operation.lane], &flow)
        return 0

    cdef long long flow_number(self, Cursor flow) except -1 nogil:
        """The number of a flow, in the order of their first operations; 0 for None."""
        return 0 if take_nothing(&flow) else self.number_of(&flow)

    cdef long long number_of(self, Cursor *flow) except -1 with gil:
        cdef tuple key
        take_length(flow)
        key = (integer(flow), integer(flow), integer(flow))
        return self.flows.setdefault(key, len(self.flows) + 1)


cdef int add_line(JsonText to, Operation *operation, PackedRecord *record) except -1 nogil:
    """The line of the op log."""
    to.add(b'{"sip":')
    to.add_natural(operation.sip)
    to.add(b',"index":')
    to.add_natural(operation.index)
    to.add(b',"engine":"')
    to.add_text(&record.engine)
    to.add(b'","name":"')
    to.add_text(&record.name)
    to.add(b'","start_ps":')
    to.add_number(&record.start_ps)
    to.add(b',"end_ps":')
    to.add_number(&record.end_ps)
    to.add(b',"cube":')
    to.add_number(&record.cube)
    to.add(b',"pe":')
    to.add_number(&record.pe)
    to.add(b',"address":')
    to.add_number(&record.address)
    to.add(b',"nbytes":')
    to.add_number(&record.nbytes)
    to.add(b',"shape":')
    to.add_numbers(record.shape, b",")
    to.add(b',"dtype":"')
    to.add_text(&record.dtype)
    to.add(b'","flow":')
    add_optional(to, record.flow)
    to.add(b',"flow_end":true' if record.flow_end else b',"flow_end":false')
    to.add(b',"inputs":[')
    add_named_inputs(to, record.inputs)
    to.add(b'],"strides":')
    to.add_numbers(record.strides, b",")
    to.add(b',"axis":')
    add_optional(to, record.axis)
    to.add(b',"checksum":')
    to.add_number(&record.checksum)
    return to.add(b"}\n")


cdef int add_slice(
    JsonText to, Operation *operation, PackedRecord *record, unsigned int tid, Number *flow
) except -1 nogil:
    """The slice of the trace; number 0 is no flow."""
    cdef long long start_ps = operation.end_ps if record.flow_end else operation.start_ps
    to.add(b',{"name":"')
    to.add_text(&record.name)
    to.add(b'","ph":"X","pid":')
    to.add_natural(operation.sip + 1)
    to.add(b',"tid":')
    to.add_natural(tid)
    to.add(b',"ts":')
    to.add_microseconds(start_ps)
    to.add(b',"dur":')
    to.add_microseconds(operation.end_ps - start_ps)
    if record.engine.nbytes:
        to.add(b',"cat":"')
        to.add_text(&record.engine)
        to.add(b'"')
    if flow.magnitude:
        to.add(b',"bind_id":"')
        to.add_hexadecimal(flow)
        to.add(b'"' if record.flow_end else b'","flow_out":true')
    if record.flow_end:
        to.add(b',"flow_in":true')
    to.add(b',"args":{')
    add_arguments(to, record)
    return to.add(b"}}")


cdef int add_optional(JsonText to, Cursor value) except -1 nogil:
    """An integer, integers, or None."""
    cdef Number number
    if take_nothing(&value):
        return to.add(b"null")
    if is_array(&value):
        return to.add_numbers(value, b",")
    take_number(&value, &number)
    return to.add_number(&number)


cdef int add_named_inputs(JsonText to, Cursor inputs) except -1 nogil:
    """The inputs of an operation, with a name beside every value."""
    cdef PackedOperand operand
    cdef Py_ssize_t index
    for index in range(take_length(&inputs)):
        if index:
            to.add(b",")
        if not is_array(&inputs):
            add_encoded(to, take_real(&inputs))
            continue
        take_operand(&inputs, &operand)
        to.add(b'{"address":')
        to.add_number(&operand.address)
        to.add(b',"shape":')
        to.add_numbers(operand.shape, b",")
        to.add(b',"dtype":"')
        to.add_text(&operand.dtype)
        to.add(b'","strides":')
        to.add_numbers(operand.strides, b",")
        to.add(b"}")
    return 0


cdef int add_arguments(JsonText to, PackedRecord *record) except -1 nogil:
    """The arguments of an operation that a viewer shows."""
    cdef Cursor shape = record.shape, inputs = record.inputs
    cdef PackedOperand operand
    cdef Py_ssize_t index, count
    to.add(b'"start_ps":')
    to.add_number(&record.start_ps)
    to.add(b',"end_ps":')
    to.add_number(&record.end_ps)
    if record.nbytes.magnitude:
        to.add(b',"bytes":')
        to.add_number(&record.nbytes)
    if record.address.magnitude:
        to.add(b',"address":"')
        to.add_hexadecimal(&record.address)
        to.add(b'"')
    if take_length(&shape) or record.dtype.nbytes:
        to.add(b',"operand":"')
        operand.shape, operand.dtype, operand.strides = record.shape, record.dtype, record.strides
        add_block(to, &operand)
        to.add(b'"')
    count = take_length(&inputs)
    if count:
        to.add(b',"inputs":"')
        for index in range(count):
            if index:
                to.add(b", ")
            if is_array(&inputs):
                take_operand(&inputs, &operand)
                add_block(to, &operand)
                to.add(b" at ")
                to.add_hexadecimal(&operand.address)
            else:
                add_written(to, take_real(&inputs))
        to.add(b'"')
    return 0


cdef int add_block(JsonText to, PackedOperand *operand) except -1 nogil:
    """The type and the shape of a block."""
    cdef Cursor strides = operand.strides
    to.add_text(&operand.dtype)
    to.add_numbers(operand.shape, b", ")
    if take_length(&strides):
        to.add(b" strides ")
        to.add_numbers(operand.strides, b", ")
    return 0


cdef int add_encoded(JsonText to, double value) except -1 with gil:
    """A number of the op log."""
    return to.add_bytes(encode(value))


cdef int add_written(JsonText to, double value) except -1 with gil:
    """A number as Python writes it."""
    return to.add_bytes(str(value).encode())


cdef object integer(Cursor *cursor):
    """The next integer, which may have 64 bits and a sign."""
    cdef Number number
    take_number(cursor, &number)
    return -<object> number.magnitude if number.is_negative else <object> number.magnitude
