"""The control ports of CPUs in C; see `sip_node.chip.host.cpu_port` and `m_cpu`."""

from sip_node.chip.fabric.packet cimport FabricTransfer, Packet, new_packet, new_transfer
from sip_node.compiled.calendar cimport Calendar, Event
from sip_node.compiled.hops cimport Endpoint
from sip_node.kernel.outlet cimport Outlet

cdef enum:
    NORMAL = 1


cdef class Forwarded:
    """A command that other CPUs carry out parts of."""


cdef class ControlPort:
    """The first base of a port whose second base is `ReferenceCpuPort`."""

    def bind(self, Calendar engine not None, fabric, int sip, int node, long long control_bytes,
             kind, done):
        """Take what the reference holds; `kind` is that of its transfers, `done` makes answers."""
        self.calendar, self.outlet = engine, Outlet(fabric, node)
        self.sip, self.node, self.control_bytes = sip, node, control_bytes
        self.kind, self.done, self.forwarded = kind, done, {}

    def send(self, int node, body, long long nbytes, long long tag=0):
        """See `ReferenceCpuPort.send`."""
        self.send_to(node, body, nbytes, tag)

    def forward(self, Packet command not None, parts):
        """See `ReferenceCpuPort.forward`."""
        cdef Forwarded forwarded = Forwarded.__new__(Forwarded)
        forwarded.command, forwarded.left = command, len(parts)
        self.tags += 1
        self.forwarded[self.tags] = forwarded
        for node, body, nbytes in parts:
            self.send_to(node, body, nbytes, self.tags)

    def answer(self, Packet command not None, done):
        """See `ReferenceCpuPort.answer`."""
        self.answer_to(command, done)

    def answered(self, Packet packet not None):
        """See `ReferenceCpuPort.answered`, and `Gathering` for the answer to all parts."""
        cdef object done = packet.transfer.body, tag = packet.transfer.tag
        cdef Forwarded forwarded = self.forwarded[tag]
        cdef long long start_ps = done.start_ps, end_ps = done.end_ps
        if not forwarded.answered or start_ps < forwarded.start_ps:
            forwarded.start_ps = start_ps
        if not forwarded.answered or end_ps > forwarded.end_ps:
            forwarded.end_ps = end_ps
        forwarded.answered = True
        forwarded.left -= 1
        if not forwarded.left:
            del self.forwarded[tag]
            self.answer_to(forwarded.command, self.done(forwarded.start_ps, forwarded.end_ps))

    cdef int send_to(self, int node, object body, long long nbytes, long long tag) except -1:
        """`send` for classes in C."""
        cdef FabricTransfer command
        cdef long long now_ps = self.calendar.now_ps
        if nbytes < self.control_bytes:
            nbytes = self.control_bytes
        command = new_transfer(self.kind, self.sip, self.node, self.sip, node)
        command.body, command.tag = body, tag
        command.total, command.sent_ps = nbytes, now_ps
        return self.outlet.send(new_packet(command, 0, nbytes, True), now_ps)

    cdef int answer_to(self, Packet command, object done) except -1:
        """`answer` for classes in C."""
        cdef FabricTransfer asked = command.transfer
        return self.send_to(asked.source_node, done, self.control_bytes, asked.tag)


cdef class CommandSpread(Endpoint):
    """The first base of an M_CPU whose second base is `ReferenceMCpu`."""

    def bind(self, Calendar engine not None, ControlPort port not None, nodes, signal):
        """Take what the reference holds, the nodes of its PEs, and the class of signals."""
        self.calendar, self.number = engine, engine.enlist(self)
        self.port, self.nodes, self.signal = port, list(nodes), signal

    cdef int take(self, Packet packet, long long tail_ps) except -1:
        """Take a command of the IO_CPU or an answer of a PE, when its last byte has arrived."""
        cdef Event event
        event.actor = self.number
        return self.calendar.insert(tail_ps, NORMAL, event, packet)

    cdef int act(self, Event event, object subject) except -1:
        cdef Packet packet = <Packet> subject
        body = packet.transfer.body
        if isinstance(body, self.port.done):
            self.port.answered(packet)
        elif isinstance(body, self.signal):
            self._signalled(body)
        else:
            self.port.forward(
                packet, [(self.nodes[pe], order, nbytes) for pe, order, nbytes in body.orders]
            )
        return 0
