"""The parts of records that are kept: blocks of memory that move together.

A part is a range of addresses: an extent of a tensor, a slot of a ring. The blocks whose first byte
is in one are assigned to it, in the slots of their records.
"""

from runtime.core.trace import Operand
from sip_node.chip.mapping.strided_block import end_of
from sip_node.chip.records.kept.kept_records cimport (
    NO_PART, KeptRecords, KeptRow, KeptSlot, RecordForm,
)
from sip_node.kernel.containers.int_array cimport IntArray

cdef object operand_type = Operand


def assigned(KeptRecords records not None, list ranges not None, str engine not None):
    """Assign blocks to parts by the range of addresses that has their first byte, and return the
    range of each part, in the order of their numbers, as (index, cube, PE, begin, end): its bytes
    that blocks cover.

    `ranges` are rising, (begin, end), and do not overlap. The blocks are those of records of an
    engine, and each PE has parts of its own; with "" those of all records, and PE (0, 0).
    """
    cdef KeptRow *row
    cdef KeptSlot *slot
    cdef RecordForm form
    cdef Py_ssize_t index, number, place, found, part
    cdef IntArray begins = IntArray(), ends = IntArray()
    cdef IntArray lowest = IntArray(), highest = IntArray()
    cdef long long end
    cdef dict parts = {}
    cdef int cube, pe
    cdef tuple key
    for begin, behind in ranges:
        begins.append(begin)
        ends.append(behind)
    for index in range(records.size):
        row = <KeptRow *> records.rows.start + index
        form = records.forms[row.form]
        if engine and form.engine != engine:
            continue
        find_spans(form)
        slot = <KeptSlot *> records.slots.start + row.slot
        number = 0
        for place in range(-1, len(form.places)):
            if place == 0:
                slot += form.first_input
            elif place > 0:
                slot += 1
            if place >= 0 and type(form.inputs[form.places[place]]) is not operand_type:
                continue
            end = slot.value + form.spans.values[number]
            number += 1
            found = range_of(begins, ends, slot.value)
            if found < 0:
                continue
            cube, pe = row.cube if engine else 0, row.pe if engine else 0
            key = found, cube, pe
            part = parts.setdefault(key, lowest.size)
            if part == lowest.size:
                lowest.append(slot.value)
                highest.append(end)
            slot.part = records.parts + part
            lowest.values[part] = min(lowest.values[part], slot.value)
            highest.values[part] = max(highest.values[part], end)
    records.parts += lowest.size
    for index in range(lowest.size):
        records.distances.append(0)
    return [
        (*key, lowest.values[part], highest.values[part]) for part, key in enumerate(parts)
    ]


def addresses_before(KeptRecords records not None, Py_ssize_t first, str engine not None):
    """The addresses of the blocks of records of an engine in no part from `first` on."""
    cdef KeptRow *row
    cdef KeptSlot *slot
    cdef RecordForm form
    cdef Py_ssize_t index, place
    cdef set addresses = set()
    for index in range(records.size):
        row = <KeptRow *> records.rows.start + index
        form = records.forms[row.form]
        if form.engine != engine:
            continue
        slot = <KeptSlot *> records.slots.start + row.slot
        if slot.part < first:
            addresses.add(slot.value)
        slot += form.first_input
        for place in range(len(form.places)):
            if slot[place].part < first and (
                type(form.inputs[form.places[place]]) is operand_type
            ):
                addresses.add(slot[place].value)
    return addresses


def uses_of(KeptRecords records not None):
    """The blocks of each part, as (record, place): a place among its inputs, or -1."""
    cdef KeptRow *row
    cdef KeptSlot *slot
    cdef RecordForm form
    cdef Py_ssize_t index, place
    cdef list uses = [[] for _ in range(records.parts)]
    for index in range(records.size):
        row = <KeptRow *> records.rows.start + index
        form = records.forms[row.form]
        slot = <KeptSlot *> records.slots.start + row.slot
        if slot.part != NO_PART:
            uses[slot.part].append((index, -1))
        slot += form.first_input
        for place in range(len(form.places)):
            if slot[place].part != NO_PART:
                uses[slot[place].part].append((index, form.places[place]))
    return uses


def pes_of(KeptRecords records not None, str engine not None):
    """The PEs, as (cube, PE), of the records of an engine."""
    cdef KeptRow *row
    cdef Py_ssize_t index
    cdef set pes = set()
    for index in range(records.size):
        row = <KeptRow *> records.rows.start + index
        if (<RecordForm> records.forms[row.form]).engine == engine:
            pes.add((row.cube, row.pe))
    return pes


cdef int find_spans(RecordForm form) except -1:
    """Find the bytes that the blocks of a form cover."""
    if form.spans is None:
        form.spans = IntArray()
        for block in (Operand(0, form.shape, form.dtype, form.strides), *form.inputs):
            if type(block) is operand_type:
                # Records of links and arrivals have an address, and no block.
                form.spans.append(end_of(block) - block.address if block.dtype else 0)
    return 0

cdef Py_ssize_t range_of(IntArray begins, IntArray ends, long long address) noexcept:
    """The range that has an address, by halving; -1 for none."""
    cdef Py_ssize_t low = 0, high = begins.size, middle
    while low < high:
        middle = (low + high) // 2
        if begins.values[middle] <= address:
            low = middle + 1
        else:
            high = middle
    return -1 if not low or ends.values[low - 1] <= address else low - 1
