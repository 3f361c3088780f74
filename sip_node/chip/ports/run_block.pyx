"""Runs of packets as blocks of words, in C. Its version in Python, `run_block.py`, has the rules.

The fields of the structs of the wire are here in their order, with the ranges of the structs. What
is refused here the decoder in Python refuses as well, and it has the reason.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.mem cimport PyMem_Free
from cpython.unicode cimport PyUnicode_DecodeUTF8
cimport cython
from libc.string cimport memcmp, memcpy, memset

from runtime.core.compiled.memory_blocks cimport resized
from runtime.wire import packet_blocks
from runtime.wire.packets import CARRIERS, PacketKind
from sip_node.chip.fabric.packet import Kind
from sip_node.chip.mapping.strided_block import StridedBlock

cdef extern from "Python.h":
    const char *PyUnicode_AsUTF8AndSize(object text, Py_ssize_t *nbytes) except NULL

cdef enum:
    WORD_BYTES = 8
    KINDS = 64
    # Words of a header before its flow, of a flow, of rows, and columns of packets: head, tail,
    # number, begin and size.
    HEADER_WORDS = 9
    FLOW_WORDS = 3
    ROWS_WORDS = 4
    COLUMNS = 5


cdef struct Limits:
    long long least
    long long most


# By field: of a header, a flow, rows, an element, the number of a transfer, and of the columns.
cdef Limits header_limits[HEADER_WORDS]
cdef Limits flow_limits[FLOW_WORDS]
cdef Limits rows_limits[ROWS_WORDS]
cdef Limits element_limits[1]
cdef Limits number_limits[1]
cdef Limits column_limits[COLUMNS]
# By its value, a kind of transfers; None for what does not cross between SIPs.
cdef list kind_of = [None] * KINDS
cdef bint carrier_kinds[KINDS]
# The text of the last transfer: those of one collective have the same.
cdef str last_call = ""
cdef bytes last_utf8 = b""


cdef int take_limits(Limits *taken, list limits, Py_ssize_t count) except -1:
    cdef Py_ssize_t index
    assert len(limits) == count, f"{len(limits)} fields, {count} words"
    for index in range(count):
        taken[index].least, taken[index].most = limits[index]
    return 0


cdef dict word_limits = packet_blocks.word_limits()
cdef Py_ssize_t call_limit = word_limits["call"], packet_limit = word_limits["packets"]
take_limits(header_limits, word_limits["header"], HEADER_WORDS)
take_limits(flow_limits, word_limits["flow"], FLOW_WORDS)
take_limits(rows_limits, word_limits["rows"], ROWS_WORDS)
take_limits(element_limits, word_limits["element"], 1)
take_limits(number_limits, word_limits["number"], 1)
take_limits(column_limits, word_limits["columns"], COLUMNS)
for each in PacketKind:
    kind_of[each] = Kind(each)
    carrier_kinds[<int> each] = each in CARRIERS


cdef struct Reader:
    const long long *position
    const long long *end


# A difference of pointers is in words; Cython's check of overflow would take it in bytes.
@cython.overflowcheck(False)
cdef inline const long long *take(Reader *reader, long long words) noexcept:
    """The `words` of a block that follow, NULL where it ends before."""
    cdef const long long *begin = reader.position
    if words < 0 or words > reader.end - begin:
        return NULL
    reader.position += words
    return begin


cdef inline bint take_optional(
    Reader *reader, Py_ssize_t words, const long long **taken
) noexcept:
    """The words of `X or none`, NULL for none; returns whether they are there."""
    cdef const long long *flag = take(reader, 1)
    taken[0] = NULL
    if flag == NULL or flag[0] < 0 or flag[0] > 1:
        return False
    if flag[0]:
        taken[0] = take(reader, words)
        return taken[0] != NULL
    return True


cdef inline const long long *take_column(Reader *reader, Py_ssize_t packets) noexcept:
    cdef const long long *count = take(reader, 1)
    if count == NULL or count[0] != packets:
        return NULL
    return take(reader, packets)


cdef class RunBlock:
    """A run that keeps all rules of the wire; its columns are words of the block."""

    cpdef long long head_ps(self, Py_ssize_t index) noexcept:
        return self.heads_ps[index]

    cpdef long long tail_ps(self, Py_ssize_t index) noexcept:
        return self.heads_ps[index] + self.tails_ps[index]

    cpdef long long seq(self, Py_ssize_t index) noexcept:
        return self.seqs[index]

    cpdef long long begin(self, Py_ssize_t index) noexcept:
        return self.begin_bytes[index]

    cpdef long long size(self, Py_ssize_t index) noexcept:
        return self.sizes[index]


cpdef RunBlock run_of(object message):
    cdef RunBlock run = RunBlock.__new__(RunBlock)
    cdef Reader reader
    cdef bytes block = message.body
    cdef Py_ssize_t nbytes = PyBytes_GET_SIZE(block), payload_bytes = len(message.payload)
    run.block = block
    # The bytes of an object of Python begin at a whole word.
    reader.position = <const long long *> PyBytes_AS_STRING(block)
    reader.end = reader.position + nbytes // WORD_BYTES
    if not (
        nbytes % WORD_BYTES == 0
        and open_transfer(&reader, run, payload_bytes)
        and open_packets(&reader, run)
        and run.heads_ps[0] == message.time_ps
        and run.seqs[0] == message.seq
        and (run.ends or not payload_bytes)
    ):
        packet_blocks.run_of(message)
        raise AssertionError("a run that only the decoder in Python accepts")
    return run


cdef bint open_transfer(Reader *reader, RunBlock run, Py_ssize_t payload_bytes) except -1:
    """Read the number and the header of a transfer; returns whether they are valid."""
    cdef const long long *word = take(reader, 1)
    cdef const long long *header
    cdef const long long *flow
    cdef const long long *rows
    cdef long long kind
    if word == NULL or not in_limits(word, number_limits, 1):
        return False
    run.number = word[0]
    if not take_optional(reader, HEADER_WORDS, &header):
        return False
    if header == NULL:
        return True
    if not take_optional(reader, FLOW_WORDS, &flow):
        return False
    if not take_optional(reader, ROWS_WORDS, &rows):
        return False
    word, kind = take(reader, 1), header[0]
    if not (
        word != NULL
        and 0 <= kind < KINDS
        and kind_of[kind] is not None
        and in_limits(header + 1, header_limits + 1, HEADER_WORDS - 1)
        and (flow == NULL or in_limits(flow, flow_limits, FLOW_WORDS))
        and (rows == NULL or in_limits(rows, rows_limits, ROWS_WORDS))
        and in_limits(word, element_limits, 1)
    ):
        return False
    run.begins, run.kind, run.element = True, kind_of[kind], <int> word[0]
    run.source_sip, run.source_node = <int> header[1], <int> header[2]
    run.sip, run.node, run.address = <int> header[3], <int> header[4], header[5]
    run.tag, run.total, run.sent_ps = header[6], header[7], header[8]
    if payload_bytes and (payload_bytes != run.total or not carrier_kinds[kind]):
        return False
    if flow != NULL:
        run.flow = flow[0], flow[1], flow[2]
    if rows != NULL:
        run.rows = StridedBlock(rows[0], rows[1], rows[2], rows[3])
    return open_call(reader, run)


cdef bint open_call(Reader *reader, RunBlock run) except -1:
    global last_call, last_utf8
    cdef const long long *nbytes = take(reader, 1)
    cdef const char *text
    cdef Py_ssize_t padding
    # Characters of UTF-8 have up to 4 bytes; their number is checked with the text.
    if nbytes == NULL or nbytes[0] < 0 or nbytes[0] > 4 * call_limit:
        return False
    text = <const char *> take(reader, (nbytes[0] + WORD_BYTES - 1) // WORD_BYTES)
    if text == NULL:
        return False
    for padding in range(nbytes[0], (<const char *> reader.position) - text):
        if text[padding]:
            return False
    if (
        nbytes[0] != PyBytes_GET_SIZE(last_utf8)
        or memcmp(text, PyBytes_AS_STRING(last_utf8), nbytes[0])
    ):
        try:
            last_call = PyUnicode_DecodeUTF8(text, nbytes[0], NULL)
        except UnicodeDecodeError:
            return False
        last_utf8 = text[: nbytes[0]]
    run.call = last_call
    return len(last_call) <= call_limit


cdef bint open_packets(Reader *reader, RunBlock run) noexcept:
    """Find the columns; returns whether they are valid, of one length, and end the block."""
    cdef Py_ssize_t index
    cdef const long long *word = take(reader, 1)
    if word == NULL or word[0] < 0 or word[0] > 1:
        return False
    run.ends = word[0] == 1
    word = take(reader, 1)
    if word == NULL or word[0] < 1 or word[0] > packet_limit:
        return False
    run.packets = word[0]
    run.heads_ps = take(reader, run.packets)
    run.tails_ps = take_column(reader, run.packets)
    run.seqs = take_column(reader, run.packets)
    run.begin_bytes = take_column(reader, run.packets)
    run.sizes = take_column(reader, run.packets)
    # A column that is not there leaves the reader before the end.
    if (
        run.heads_ps == NULL or run.tails_ps == NULL or run.seqs == NULL
        or run.begin_bytes == NULL or run.sizes == NULL or reader.position != reader.end
    ):
        return False
    for index in range(1, run.packets):
        if run.heads_ps[index] < run.heads_ps[index - 1] or run.seqs[index] <= run.seqs[index - 1]:
            return False
    return (
        column_in_limits(run.heads_ps, &column_limits[0], run.packets)
        and column_in_limits(run.tails_ps, &column_limits[1], run.packets)
        and column_in_limits(run.seqs, &column_limits[2], run.packets)
        and column_in_limits(run.begin_bytes, &column_limits[3], run.packets)
        and column_in_limits(run.sizes, &column_limits[4], run.packets)
    )


cdef inline bint in_limits(
    const long long *words, Limits *limits, Py_ssize_t count
) noexcept:
    cdef Py_ssize_t index
    for index in range(count):
        if not limits[index].least <= words[index] <= limits[index].most:
            return False
    return True


cdef inline bint column_in_limits(
    const long long *words, Limits *limits, Py_ssize_t count
) noexcept:
    cdef Py_ssize_t index
    for index in range(count):
        if not limits.least <= words[index] <= limits.most:
            return False
    return True


cdef class OpenRun:
    """The packets of a transfer that wait for a message: run `number` of a link."""

    def __init__(self, FabricTransfer transfer not None, long long number, bint is_first):
        self.transfer, self.number, self.is_first = transfer, number, is_first

    def __dealloc__(self):
        PyMem_Free(self.values)

    cpdef bint is_full(self) noexcept:
        return self.size == packet_limit

    cpdef int append(
        self, long long head_ps, long long tail_ps, long long seq, Packet packet
    ) except -1:
        cdef Py_ssize_t capacity
        cdef long long *row
        if self.size == self.capacity:
            capacity = 2 * self.capacity + 16
            self.values = <long long *> resized(
                self.values, capacity * COLUMNS * sizeof(long long)
            )
            self.capacity = capacity
        if not self.size:
            self.time_ps, self.seq = head_ps, seq
        row = &self.values[self.size * COLUMNS]
        row[0], row[1], row[2] = head_ps, tail_ps - head_ps, seq
        row[3], row[4] = packet.begin, packet.size
        self.size += 1
        if packet.last:
            self.ends = True
        return 0

    cpdef bytes packed(self):
        cdef long long head[3 + HEADER_WORDS + FLOW_WORDS + 1 + ROWS_WORDS + 2]
        cdef Py_ssize_t words = 2, call_bytes = 0, call_words = 0, index, column
        cdef const char *call = NULL
        cdef long long *target
        cdef bytes block
        head[0], head[1] = self.number, self.is_first
        if self.is_first:
            call = PyUnicode_AsUTF8AndSize(self.transfer.call, &call_bytes)
            call_words = (call_bytes + WORD_BYTES - 1) // WORD_BYTES
            words += pack_header(&head[words], self.transfer)
            head[words], head[words + 1] = self.transfer.element, call_bytes
            words += 2
        block = PyBytes_FromStringAndSize(
            NULL, WORD_BYTES * (words + call_words + 1 + COLUMNS * (1 + self.size))
        )
        target = <long long *> PyBytes_AS_STRING(block)
        memcpy(target, head, words * WORD_BYTES)
        target += words
        if call_words:
            memset(target, 0, call_words * WORD_BYTES)
            memcpy(target, call, call_bytes)
            target += call_words
        target[0] = self.ends
        target += 1
        for column in range(COLUMNS):
            target[0] = self.size
            for index in range(self.size):
                target[1 + index] = self.values[index * COLUMNS + column]
            target += 1 + self.size
        return block


cdef Py_ssize_t pack_header(long long *target, FabricTransfer transfer) except -1:
    """The words of a header up to its rows; returns their number."""
    cdef Py_ssize_t words = HEADER_WORDS
    target[0], target[1], target[2] = transfer.kind, transfer.source_sip, transfer.source_node
    target[3], target[4], target[5] = transfer.sip, transfer.node, transfer.address
    target[6], target[7], target[8] = transfer.tag, transfer.total, transfer.sent_ps
    target[words] = transfer.flow is not None
    words += 1
    if transfer.flow is not None:
        target[words], target[words + 1], target[words + 2] = transfer.flow
        words += FLOW_WORDS
    target[words] = transfer.rows is not None
    words += 1
    if transfer.rows is not None:
        target[words], target[words + 1], target[words + 2], target[words + 3] = transfer.rows
        words += ROWS_WORDS
    return words
