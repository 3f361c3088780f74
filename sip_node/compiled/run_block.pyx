"""Runs of packets as blocks of words, in C; see `runtime.wire.packet_blocks`.

The fields of the structs of the wire are here in their order. Their ranges come from the structs,
by `set_limits`. What is refused here the reference refuses as well, and it has the reason.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.string cimport memcmp, memcpy, memset

from sip_node.chip.fabric.packet cimport FabricTransfer, new_transfer
from sip_node.compiled.packet_runs cimport COLUMNS, OpenRun

cdef extern from "Python.h":
    const char *PyUnicode_AsUTF8AndSize(object text, Py_ssize_t *nbytes) except NULL

cdef enum:
    WORD_BYTES = 8
    KINDS = 64


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
cdef Py_ssize_t call_limit, packet_limit
# By its value, a kind of transfers; None for what does not cross between SIPs.
cdef list kind_of = [None] * KINDS
cdef bint carrier_kinds[KINDS]
cdef bint many_packet_kinds[KINDS]
cdef long long read_kind
cdef object strided_block
# The text of the last transfer: those of one collective have the same.
cdef str last_call = ""
cdef bytes last_utf8 = b""


def set_limits(dict limits not None, dict kinds not None, block):
    """Take the ranges of the structs, the kinds that cross by property, and the class of rows."""
    global call_limit, packet_limit, strided_block, read_kind
    take_limits(header_limits, limits["header"], HEADER_WORDS)
    take_limits(flow_limits, limits["flow"], FLOW_WORDS)
    take_limits(rows_limits, limits["rows"], ROWS_WORDS)
    take_limits(element_limits, limits["element"], 1)
    take_limits(number_limits, limits["number"], 1)
    take_limits(column_limits, limits["columns"], COLUMNS)
    call_limit, packet_limit, strided_block = limits["call"], limits["packets"], block
    read_kind = kinds["read"]
    for kind in kinds["all"]:
        kind_of[kind] = kind
        carrier_kinds[kind] = kind in kinds["carriers"]
        many_packet_kinds[kind] = kind in kinds["many_packets"]


cdef int take_limits(Limits *taken, list limits, Py_ssize_t count) except -1:
    cdef Py_ssize_t index
    assert len(limits) == count, f"{len(limits)} fields, {count} words"
    for index in range(count):
        taken[index].least, taken[index].most = limits[index]
    return 0


cdef bint carries(long long kind) noexcept:
    return carrier_kinds[kind]


cdef bint has_many_packets(long long kind) noexcept:
    return many_packet_kinds[kind]


cdef bint requests(long long kind) noexcept:
    return kind == read_kind


cdef struct Reader:
    const long long *at
    const long long *end


cdef inline const long long *take(Reader *reader, long long words) noexcept:
    """The `words` of a block that follow, NULL where it ends before."""
    cdef const long long *begin = reader.at
    if words < 0 or words > reader.end - begin:
        return NULL
    reader.at += words
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


cdef bint open_call(Reader *reader, RunBlock *run) noexcept:
    cdef const long long *nbytes = take(reader, 1)
    cdef const long long *text
    cdef Py_ssize_t padding
    # Characters of UTF-8 have up to 4 bytes; their number is checked with the text.
    if nbytes == NULL or nbytes[0] < 0 or nbytes[0] > 4 * call_limit:
        return False
    text = take(reader, (nbytes[0] + WORD_BYTES - 1) // WORD_BYTES)
    if text == NULL:
        return False
    run.call, run.call_bytes = <const char *> text, nbytes[0]
    for padding in range(run.call_bytes, (<const char *> reader.at) - run.call):
        if run.call[padding]:
            return False
    return True


cdef bint open_block(bytes block, RunBlock *run) noexcept:
    """Find the fields of a block; returns whether all are there, with one length of all columns."""
    cdef Reader reader
    cdef const long long *word
    cdef Py_ssize_t nbytes = PyBytes_GET_SIZE(block)
    # The bytes of an object of Python begin at a whole word.
    reader.at = <const long long *> PyBytes_AS_STRING(block)
    reader.end = reader.at + nbytes // WORD_BYTES
    if nbytes % WORD_BYTES:
        return False
    word = take(&reader, 1)
    if word == NULL:
        return False
    run.number = word[0]
    if not take_optional(&reader, HEADER_WORDS, &run.header):
        return False
    run.flow, run.rows = NULL, NULL
    if run.header != NULL:
        if not take_optional(&reader, FLOW_WORDS, &run.flow):
            return False
        if not take_optional(&reader, ROWS_WORDS, &run.rows):
            return False
        word = take(&reader, 1)
        if word == NULL:
            return False
        run.element = word[0]
        if not open_call(&reader, run):
            return False
    return open_packets(&reader, run)


cdef bint open_packets(Reader *reader, RunBlock *run) noexcept:
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
    run.begins = take_column(reader, run.packets)
    run.sizes = take_column(reader, run.packets)
    # A column that is not there leaves the reader before the end.
    return (
        run.heads_ps != NULL and run.tails_ps != NULL and run.seqs != NULL
        and run.begins != NULL and run.sizes != NULL and reader.at == reader.end
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


cdef bint is_valid(RunBlock *run, long long time_ps, long long seq, Py_ssize_t payload_bytes):
    """Whether a run keeps all rules of the wire, in a message with these fields."""
    cdef Py_ssize_t index
    if run.heads_ps[0] != time_ps or run.seqs[0] != seq or (payload_bytes and not run.ends):
        return False
    if not (
        in_limits(&run.number, number_limits, 1)
        and column_in_limits(run.heads_ps, &column_limits[0], run.packets)
        and column_in_limits(run.tails_ps, &column_limits[1], run.packets)
        and column_in_limits(run.seqs, &column_limits[2], run.packets)
        and column_in_limits(run.begins, &column_limits[3], run.packets)
        and column_in_limits(run.sizes, &column_limits[4], run.packets)
    ):
        return False
    for index in range(1, run.packets):
        if run.heads_ps[index] < run.heads_ps[index - 1] or run.seqs[index] <= run.seqs[index - 1]:
            return False
    return run.header == NULL or is_valid_header(run, payload_bytes)


cdef bint is_valid_header(RunBlock *run, Py_ssize_t payload_bytes):
    cdef long long kind = run.header[0]
    if not (0 <= kind < KINDS and kind_of[kind] is not None):
        return False
    if not in_limits(run.header + 1, header_limits + 1, HEADER_WORDS - 1):
        return False
    if run.flow != NULL and not in_limits(run.flow, flow_limits, FLOW_WORDS):
        return False
    if run.rows != NULL and not in_limits(run.rows, rows_limits, ROWS_WORDS):
        return False
    if not in_limits(&run.element, element_limits, 1):
        return False
    # `total` is the eighth field of a header.
    if payload_bytes and (payload_bytes != run.header[7] or not carrier_kinds[kind]):
        return False
    try:
        return len(call_of(run)) <= call_limit
    except UnicodeDecodeError:
        return False


cdef str call_of(RunBlock *run):
    global last_call, last_utf8
    if (
        run.call_bytes != PyBytes_GET_SIZE(last_utf8)
        or memcmp(run.call, PyBytes_AS_STRING(last_utf8), run.call_bytes)
    ):
        last_call = PyUnicode_DecodeUTF8(run.call, run.call_bytes, NULL)
        last_utf8 = run.call[: run.call_bytes]
    return last_call


cdef FabricTransfer transfer_of(RunBlock *run):
    """The transfer of a header, without its payload."""
    cdef FabricTransfer transfer = new_transfer(
        kind_of[run.header[0]], <int> run.header[1], <int> run.header[2], <int> run.header[3],
        <int> run.header[4],
    )
    transfer.address, transfer.tag = run.header[5], run.header[6]
    transfer.total, transfer.sent_ps = run.header[7], run.header[8]
    if run.flow != NULL:
        transfer.flow = run.flow[0], run.flow[1], run.flow[2]
    if run.rows != NULL:
        transfer.rows = strided_block(run.rows[0], run.rows[1], run.rows[2], run.rows[3])
    transfer.element, transfer.call = <int> run.element, call_of(run)
    return transfer


cdef bytes pack(OpenRun run, FabricTransfer transfer):
    """The block of a run; with its first packet, `transfer` gives the header."""
    cdef long long head[3 + HEADER_WORDS + FLOW_WORDS + 1 + ROWS_WORDS + 2]
    cdef Py_ssize_t words = 0, call_bytes = 0, call_words = 0, index, column
    cdef const char *call = NULL
    cdef long long *at
    cdef bytes block
    head[0], head[1] = run.number, run.is_first
    words = 2
    if run.is_first:
        call = PyUnicode_AsUTF8AndSize(transfer.call, &call_bytes)
        call_words = (call_bytes + WORD_BYTES - 1) // WORD_BYTES
        words += pack_header(&head[words], transfer)
        head[words], head[words + 1] = transfer.element, call_bytes
        words += 2
    block = PyBytes_FromStringAndSize(
        NULL, WORD_BYTES * (words + call_words + 1 + COLUMNS * (1 + run.size))
    )
    at = <long long *> PyBytes_AS_STRING(block)
    memcpy(at, head, words * WORD_BYTES)
    at += words
    if call_words:
        memset(at, 0, call_words * WORD_BYTES)
        memcpy(at, call, call_bytes)
        at += call_words
    at[0] = run.ends
    at += 1
    for column in range(COLUMNS):
        at[0] = run.size
        for index in range(run.size):
            at[1 + index] = run.values[index * COLUMNS + column]
        at += 1 + run.size
    return block


cdef Py_ssize_t pack_header(long long *at, FabricTransfer transfer) except -1:
    """The words of a header up to its rows; returns their number."""
    cdef Py_ssize_t words = HEADER_WORDS
    at[0], at[1], at[2] = transfer.kind, transfer.source_sip, transfer.source_node
    at[3], at[4], at[5] = transfer.sip, transfer.node, transfer.address
    at[6], at[7], at[8] = transfer.tag, transfer.total, transfer.sent_ps
    at[words] = transfer.flow is not None
    words += 1
    if transfer.flow is not None:
        at[words], at[words + 1], at[words + 2] = transfer.flow
        words += FLOW_WORDS
    at[words] = transfer.rows is not None
    words += 1
    if transfer.rows is not None:
        at[words], at[words + 1], at[words + 2], at[words + 3] = transfer.rows
        words += ROWS_WORDS
    return words
