"""Programs that block on simulated time, in C: see program.pyx."""

from sip_node.chip.completion cimport AnyCompletion as Completion, Continuation


cdef class ProgramStacks:
    cdef object loop
    cdef object serve
    cdef list idle

    cpdef take(self, context)
    cpdef give_back(self, stack)
    cdef object new(self)


cdef class Program(Continuation):
    cdef readonly Completion finished
    cdef object main
    cdef ProgramStacks stacks
    cdef object clock
    cdef object greenlet
    # The switches to the program and to the event loop.
    cdef object to_program
    cdef object to_loop

    cdef int enter(self, object value, object switch) except -1
