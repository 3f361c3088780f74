"""The text of the operations of a run in C; see `coordinator.report.log_text`."""

import msgspec

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
    """The twin of `ReferenceLogText`."""

    cdef TotalOrder order
    cdef JsonText lines
    cdef JsonText slices
    cdef dict flows

    def __init__(self, logs):
        self.order = TotalOrder(logs)
        self.lines, self.slices, self.flows = JsonText(), JsonText(), {}

    @property
    def lanes(self):
        """See `ReferenceLogText.lanes`."""
        return self.order.lanes

    def pieces(self, const unsigned int[::1] tid_of_lane):
        """See `ReferenceLogText.pieces`."""
        cdef Py_ssize_t index
        cdef Operation *operation
        cdef Cursor cursor
        cdef PackedRecord record
        for index in range(self.order.count):
            operation = &self.order.operations[index]
            cursor = operation.packed
            take_record(&cursor, &record)
            self.add_line(operation, &record)
            self.add_slice(operation, &record, tid_of_lane[operation.lane])
            if (index + 1) % PIECE_OPERATIONS == 0:
                yield self.lines.taken(), self.slices.taken()
        if self.lines.size:
            yield self.lines.taken(), self.slices.taken()

    cdef int add_line(self, Operation *operation, PackedRecord *record) except -1:
        """The line of the op log."""
        cdef JsonText to = self.lines
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
        self, Operation *operation, PackedRecord *record, unsigned int tid
    ) except -1:
        """The slice of the trace."""
        cdef JsonText to = self.slices
        cdef long long start_ps = operation.end_ps if record.flow_end else operation.start_ps
        cdef object flow = self.flow(record)
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
        if flow is not None:
            to.add(b',"bind_id":"')
            to.add_bytes(hex(flow).encode())
            to.add(b'"' if record.flow_end else b'","flow_out":true')
        if record.flow_end:
            to.add(b',"flow_in":true')
        to.add(b',"args":{')
        add_arguments(to, record)
        return to.add(b"}}")

    cdef object flow(self, PackedRecord *record):
        """The number of the flow of a record, or None."""
        cdef Cursor flow = record.flow
        cdef Number number
        cdef bytes key
        if take_nothing(&flow):
            return None
        # Equal numbers have equal bytes: of all encodings the LPs use the shortest.
        take_length(&flow)
        for _ in range(3):
            take_number(&flow, &number)
        key = record.flow.at[:flow.at - record.flow.at]
        return self.flows.setdefault(key, len(self.flows) + 1)


cdef int add_optional(JsonText to, Cursor value) except -1:
    """An integer, integers, or None."""
    cdef Number number
    if take_nothing(&value):
        return to.add(b"null")
    if is_array(&value):
        return to.add_numbers(value, b",")
    take_number(&value, &number)
    return to.add_number(&number)


cdef int add_named_inputs(JsonText to, Cursor inputs) except -1:
    """The inputs of an operation, with a name beside every value."""
    cdef PackedOperand operand
    cdef Py_ssize_t index
    for index in range(take_length(&inputs)):
        if index:
            to.add(b",")
        if not is_array(&inputs):
            to.add_bytes(encode(take_real(&inputs)))
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


cdef int add_arguments(JsonText to, PackedRecord *record) except -1:
    """What a viewer shows of an operation."""
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
                to.add_bytes(str(take_real(&inputs)).encode())
        to.add(b'"')
    return 0


cdef int add_block(JsonText to, PackedOperand *operand) except -1:
    """The type and the shape of a block."""
    cdef Cursor strides = operand.strides
    to.add_text(&operand.dtype)
    to.add_numbers(operand.shape, b", ")
    if take_length(&strides):
        to.add(b" strides ")
        to.add_numbers(operand.strides, b", ")
    return 0
