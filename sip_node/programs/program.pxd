cimport cython

from sip_node.chip.completion cimport AnyCompletion, Continuation


cdef class AnyProgram(Continuation):
    cdef readonly AnyCompletion finished
    cdef object _clock

    @cython.locals(completion=AnyCompletion)
    cpdef call(self, object start, tuple args)
    @cython.locals(completion=AnyCompletion, call=tuple)
    cdef _enter(self, object value, object error)
    cdef object _send(self, object value)
    cdef object _throw(self, object error)
    cdef _left(self)


cdef class StepsProgram(AnyProgram):
    cdef object _main, _steps


cdef class Program(AnyProgram):
    cdef object _main, _stacks, _greenlet
    # The switches to the program and to the event loop.
    cdef object _to_program, _to_loop


cdef AnyCompletion _called(object start, tuple args)
