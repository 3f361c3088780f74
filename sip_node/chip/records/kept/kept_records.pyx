"""Records that are kept to be entered again at a later time, with other addresses and numbers.

A record is a row of its numbers; what else it has, it has in common with others of its form: the
bytes of the op log, with holes for these numbers. To enter it again is to copy the bytes and to
fill the holes. Addresses are in slots, which are assigned to parts: blocks that move together.

    rows    start end form slot cube pe checksum | start end form slot ...
    slots   address, part | address, part | ...
    forms   engine name _ _ _ _ _ nbytes shape dtype flow [_ shape dtype strides, ...] ... _
"""

from array import array

from libc.string cimport memcpy

from runtime.core.launch_numbers import LaunchNumber
from runtime.core.trace import Operand, OpRecord
from sip_node.chip.records.op_log cimport OpLog
from sip_node.chip.records.op_rows cimport read_address_of
from sip_node.chip.records.kept.record_bytes cimport (
    ADDRESS, CHECKSUM, HEAD, NUMBER, add_record,
)
from sip_node.compiled.operation cimport FOR_NOTHING
from sip_node.compiled.packed_bytes cimport FIX_ARRAY, MOST_BYTES, kb_double, kb_number

cdef object operand_type = Operand, number_type = LaunchNumber


cdef class RecordForm:
    """What some records have in common."""


cdef class KeptRecords:
    """The records of one chip from `begin_ps` and step `first_step` of a program on, but for those
    of its host, which follow from other commands. If they are more than `most_bytes`, it `is_full`
    and has none of them.
    """

    def __init__(
        self, long long begin_ps, long long first_step, long long most_bytes, *, bint has_waits
    ):
        self.begin_ps, self.first_step = begin_ps, first_step
        self.most_bytes, self.has_waits = most_bytes, has_waits
        self.drop()

    def drop(self):
        """Forget all records."""
        self.rows, self.slots, self.waits = ByteBuffer(), ByteBuffer(), ByteBuffer()
        self.forms, self.by_encoded, self.links, self.numbers = [], {}, {}, {}
        self.scratch, self.scratch_holes = PackedBytes(), IntArray()
        self.link_names, self.distances, self.later_flows, self.parts = [], IntArray(), {}, 0

    def __len__(self):
        return self.size

    @property
    def nbytes(self):
        """Bytes of memory."""
        return (
            self.rows.size + self.slots.size + self.waits.size + FORM_BYTES * len(self.forms)
        )

    def trim(self):
        """Free what only more records would need."""
        self.rows.trim()
        self.slots.trim()
        self.waits.trim()
        self.scratch, self.scratch_holes, self.by_encoded = PackedBytes(), IntArray(), {}
        self.link_names = [*self.links]

    cdef int keep(
        self, str engine, str name, Operation *about, tuple shape, str dtype, tuple strides,
        tuple inputs, object flow, object axis, QueueTimes times
    ) except -1:
        """Keep a record."""
        cdef KeptRow *row
        cdef Py_ssize_t place
        if self.is_full or engine == "host":
            return 0
        self.rows.reserve(sizeof(KeptRow))
        row = <KeptRow *> (self.rows.start + self.rows.size)
        row.start_ps, row.end_ps = about.start_ps - self.begin_ps, about.end_ps - self.begin_ps
        row.cube, row.pe, row.checksum = about.cube, about.pe, about.checksum
        row.form = self.find_form(
            engine, name, about, shape, dtype, strides, inputs, flow, axis
        )
        row.slot = self.slots.size // sizeof(KeptSlot)
        self.add_slot(about.address)
        if flow is not None:
            for number in flow:
                self.add_slot(number)
        for place, each in enumerate(inputs):
            if type(each) is operand_type:
                self.add_slot(each.address)
            elif type(each) is number_type:
                self.add_number(about, each, place)
        if self.has_waits:
            self.add_wait(about, times)
        self.rows.size += sizeof(KeptRow)
        self.size += 1
        if self.rows.size + self.slots.size + self.waits.size > self.most_bytes:
            self.is_full = True
            self.drop()
        return 0

    cdef int find_form(
        self, str engine, str name, Operation *about, tuple shape, str dtype, tuple strides,
        tuple inputs, object flow, object axis
    ) except -1:
        """The number of the form of a record."""
        cdef RecordForm form
        cdef PackedBytes to = self.scratch
        cdef bytes encoded
        self.scratch_holes.size = 0
        add_record(
            to, engine, name, about, shape, dtype, strides, inputs, flow, axis, self.scratch_holes
        )
        encoded = to.taken()
        number = self.by_encoded.get(encoded)
        if number is not None:
            return number
        form = RecordForm.__new__(RecordForm)
        form.engine, form.name, form.shape, form.dtype = engine, name, shape, dtype
        form.strides, form.inputs, form.axis, form.nbytes = strides, inputs, axis, about.nbytes
        form.flow_end, form.has_flow = about.flow_end, flow is not None
        form.first_input = 4 if form.has_flow else 1
        form.encoded, form.holes = encoded, self.scratch_holes
        self.scratch_holes = IntArray()
        form.places = tuple([
            place for place, each in enumerate(inputs)
            if type(each) is operand_type or type(each) is number_type
        ])
        self.by_encoded[encoded] = len(self.forms)
        self.forms.append(form)
        return len(self.forms) - 1

    cdef int add_slot(self, long long value) except -1:
        cdef KeptSlot *slot
        self.slots.reserve(sizeof(KeptSlot))
        slot = <KeptSlot *> (self.slots.start + self.slots.size)
        slot.value, slot.part = value, NO_PART
        self.slots.size += sizeof(KeptSlot)
        return 0

    cdef int add_number(self, Operation *about, object number, Py_ssize_t place) except -1:
        """A number that follows from the arguments of the launch."""
        cdef double value = number
        cdef long long bits
        memcpy(&bits, &value, sizeof(double))
        self.add_slot(bits)
        # By identity: formulas with 0.0 and with -0.0 are equal.
        key = about.cube, about.pe, id(number.formula)
        known = self.numbers.get(key)
        if known is None:
            known = self.numbers[key] = (about.cube, about.pe, number.formula, array("q"))
        known[3].append(self.size)
        known[3].append(place)
        return 0

    cdef int add_wait(self, Operation *about, QueueTimes times) except -1:
        cdef KeptWait *wait
        self.waits.reserve(sizeof(KeptWait))
        wait = <KeptWait *> (self.waits.start + self.waits.size)
        wait.requested_ps = about.requested_ps - self.begin_ps
        wait.waited_for, wait.link, wait.step = about.waited_for, NO_TIMES, NO_STEP
        if about.step >= 0:
            wait.step = about.step - self.first_step
        if times is not None:
            wait.link_ps, wait.memory_ps = times.link_ps, times.memory_ps
            wait.link = self.links.setdefault(times.link, len(self.links))
        self.waits.size += sizeof(KeptWait)
        return 0

    def first_end_ps(self, str engine not None):
        """The end of the first record of an engine."""
        cdef KeptRow *row
        cdef Py_ssize_t index
        for index in range(self.size):
            row = <KeptRow *> self.rows.start + index
            if (<RecordForm> self.forms[row.form]).engine == engine:
                return self.begin_ps + row.end_ps
        raise ValueError(f"no record of {engine}")

    def move(self, tuple distances not None):
        """Let the parts be at some distances from their first addresses."""
        cdef Py_ssize_t part
        for part in range(self.parts):
            self.distances.values[part] = distances[part]

    def set_number(self, Py_ssize_t index, Py_ssize_t place, double number):
        """Let an input of a record be another number."""
        cdef KeptRow *row = <KeptRow *> self.rows.start + index
        cdef RecordForm form = self.forms[row.form]
        cdef KeptSlot *slot = <KeptSlot *> self.slots.start + row.slot
        memcpy(
            &slot[form.first_input + form.places.index(place)].value, &number, sizeof(double)
        )

    def number_flows(self, dict later not None):
        """Let the numbers of transfers to other SIPs rise by `later[source sip, target sip]`."""
        self.later_flows = later

    def enter(
        self, OpLog log not None, Py_ssize_t first, Py_ssize_t behind, long long begin_ps,
        long long steps, const unsigned int[:] checksums
    ):
        """Enter the records from `first` to before `behind`, of a launch that began at `begin_ps`,
        behind `steps` steps.

        Without `checksums` they have those of the first time.
        """
        cdef KeptRow *row
        cdef KeptSlot *slot
        cdef RecordForm form
        cdef Operation about
        cdef QueueTimes waited, times = QueueTimes()
        cdef Py_ssize_t index
        for index in range(first, behind):
            row = <KeptRow *> self.rows.start + index
            slot = <KeptSlot *> self.slots.start + row.slot
            form = <RecordForm> self.forms[row.form]
            about.start_ps, about.end_ps = row.start_ps + begin_ps, row.end_ps + begin_ps
            about.cube, about.pe = row.cube, row.pe
            about.address = self.value(slot)
            about.checksum = row.checksum if checksums is None else checksums[index]
            self.encode(log.encoded, form, &about, slot)
            log.added(&about)
            if log.rows is not None or log.recordings or log.keepers:
                about.nbytes, about.flow_end = form.nbytes, form.flow_end
                waited = self.wait_of(index, begin_ps, steps, &about, times)
                self.collect(log, form, &about, slot, waited)
            log.pass_on_full()

    cdef int encode(
        self, PackedBytes to, RecordForm form, Operation *about, KeptSlot *slot
    ) except -1:
        """Add the bytes of a record."""
        cdef const char *text = form.encoded
        cdef Py_ssize_t number, begin = 0, end, count = form.holes.size
        cdef char *out
        cdef double value
        # A head has five numbers, more than any other hole.
        to.reserve(len(form.encoded) + 5 * MOST_BYTES * count)
        out = to.start + to.size
        slot += 1
        for number in range(count):
            end = form.holes.values[number]
            memcpy(out, text + begin, end - begin)
            out += end - begin
            begin = end + 2
            kind = text[end + 1]
            if kind == HEAD:
                out = kb_number(out, about.start_ps)
                out = kb_number(out, about.end_ps)
                out = kb_number(out, about.cube)
                out = kb_number(out, about.pe)
                out = kb_number(out, about.address)
            elif kind == ADDRESS:
                out = kb_number(out, self.value(slot))
                slot += 1
            elif kind == NUMBER:
                memcpy(&value, &slot.value, sizeof(double))
                out = kb_double(out, value)
                slot += 1
            elif kind == CHECKSUM:
                out = kb_number(out, about.checksum)
            else:
                out[0] = <char> (FIX_ARRAY | 3)
                out = kb_number(out + 1, slot[0].value)
                out = kb_number(out, slot[1].value)
                out = kb_number(out, self.flow_number(slot))
                slot += 3
        to.size = out - to.start
        return 0

    cdef int collect(
        self, OpLog log, RecordForm form, Operation *about, KeptSlot *slot, QueueTimes times
    ) except -1:
        """Let those have a record who collect the records of a log."""
        cdef tuple flow = None, inputs = self.inputs_of(form, slot)
        if form.has_flow:
            flow = slot[1].value, slot[2].value, self.flow_number(slot + 1)
        if log.rows is not None:
            log.rows.enter(form.engine, form.name, about, read_address_of(inputs), flow, times)
        log.pass_to_recordings(
            form.engine, form.name, about, form.shape, form.dtype, form.strides, inputs, flow,
            form.axis, times,
        )
        return 0

    cdef tuple inputs_of(self, RecordForm form, KeptSlot *slot):
        """The inputs of a record."""
        cdef list inputs = [*form.inputs]
        cdef double value
        slot += form.first_input
        for place in form.places:
            each = inputs[place]
            if type(each) is operand_type:
                inputs[place] = operand_type(
                    self.value(slot), each.shape, each.dtype, each.strides
                )
            else:
                memcpy(&value, &slot.value, sizeof(double))
                inputs[place] = value
            slot += 1
        return tuple(inputs)

    cdef QueueTimes wait_of(
        self, Py_ssize_t index, long long begin_ps, long long steps, Operation *about,
        QueueTimes times
    ):
        """Add the wait and the step of a record to what is about it; the time for which its packets
        have queued, in `times`, or None.
        """
        cdef KeptWait *wait = <KeptWait *> self.waits.start + index
        about.step = NO_STEP
        if not self.has_waits:
            about.requested_ps, about.waited_for = about.start_ps, FOR_NOTHING
            return None
        about.requested_ps, about.waited_for = wait.requested_ps + begin_ps, wait.waited_for
        if wait.step != NO_STEP:
            about.step = wait.step + steps
        if wait.link == NO_TIMES:
            return None
        times.link_ps, times.memory_ps = wait.link_ps, wait.memory_ps
        times.link = self.link_names[wait.link]
        return times

    cdef long long value(self, KeptSlot *slot) noexcept:
        """The address in a slot, now."""
        if slot.part == NO_PART:
            return slot.value
        return slot.value + self.distances.values[slot.part]

    cdef long long flow_number(self, KeptSlot *slot) except? -1:
        """The number of the flow in three slots, now."""
        if not self.later_flows:
            return slot[2].value
        return slot[2].value + self.later_flows[slot[0].value, slot[1].value]
