"""The kernels of a PE in C; see `sip_node.chip.pe.cpu`.

Those of the compute thread, which a launch starts on all PEs of a SIP. The reference carries out
all other commands.
"""

from sip_node.compiled.calendar cimport Calendar, Event
from sip_node.compiled.completion cimport Completion, Continuation
from sip_node.compiled.control_port cimport ControlPort
from sip_node.compiled.hops cimport Endpoint
from sip_node.chip.op_log cimport OpLog
from sip_node.compiled.operation cimport FOR_LAUNCH, Operation
from sip_node.chip.fabric.packet cimport Packet

cdef enum:
    NORMAL = 1


cdef enum Step:
    RECEIVED
    BEGINS

cdef str THREAD = "kernels"
# What at most one kernel has: the compute thread runs one at a time.
cdef tuple SLOT = (THREAD, "")


cdef class KernelRun(Continuation):
    """A kernel that runs; it goes on when the kernel has ended."""

    cdef int resume(self, Completion done) except -1:
        return self.runs.end(self, done.error)


cdef class KernelRuns(Endpoint):
    """The first base of a CPU whose second base is `ReferencePeCpu`."""

    def bind(self, Calendar engine not None, ControlPort port not None, OpLog log not None, launch,
             start_kernel, send_bounds, coordinates, dict running not None):
        """Take what the reference holds; `launch` is the class of the orders to run a kernel."""
        self.calendar, self.number = engine, engine.enlist(self)
        self.port, self.log, self.launch = port, log, launch
        self.start_kernel, self.send_bounds, self.running = start_kernel, send_bounds, running
        self.coordinates = coordinates
        self.at_cube, self.at_pe = coordinates.cube, coordinates.pe
        self.pe = (coordinates.cube, coordinates.pe)

    cdef int take(self, Packet packet, long long tail_ps) except -1:
        """See `ReferencePeCpu.accept`."""
        return self.insert(tail_ps, RECEIVED, packet)

    cdef int act(self, Event event, object subject) except -1:
        cdef Packet packet = <Packet> subject
        cdef long long start_ps
        order = packet.transfer.body
        if event.step == BEGINS:
            return self.begin(packet, order, event.tail_ps)
        if type(order) is self.launch and order.thread == THREAD:
            # See the reference for a command that comes late.
            start_ps = order.start_ps
            return self.insert(max(start_ps, self.calendar.now_ps), BEGINS, packet)
        self._received(packet)
        return 0

    cdef int insert(self, long long time_ps, int step, Packet packet) except -1:
        cdef Event event
        event.actor, event.step, event.tail_ps = self.number, step, self.calendar.now_ps
        return self.calendar.insert(time_ps, NORMAL, event, packet)

    cdef int begin(self, Packet packet, object launch, long long requested_ps) except -1:
        cdef KernelRun run = KernelRun.__new__(KernelRun)
        cdef Completion finished
        run.start_ps, run.requested_ps = self.calendar.now_ps, requested_ps
        run.runs, run.command, run.name = self, packet, launch.name
        run.kernel = self.running[SLOT] = self.start_kernel(self.coordinates, launch)
        finished = run.kernel.finished
        return finished.attach(run)

    cdef int end(self, KernelRun run, object error) except -1:
        cdef Operation about
        del self.running[SLOT]
        run.kernel.close()
        self.send_bounds.ended(self.pe, THREAD)
        if error is not None:
            self._failed(error)
        about.start_ps, about.end_ps = run.start_ps, self.calendar.now_ps
        about.cube, about.pe = self.at_cube, self.at_pe
        about.address, about.nbytes, about.checksum, about.flow_end = 0, 0, 0, False
        about.requested_ps, about.waited_for = run.requested_ps, FOR_LAUNCH
        self.log.enter("pe_cpu", f"kernel {run.name}", &about, (), "", (), (), None, None, None)
        return self.port.answer_to(run.command, self.port.done(about.start_ps, about.end_ps))
