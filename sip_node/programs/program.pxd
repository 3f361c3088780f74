cimport cython

from sip_node.chip.completion cimport AnyCompletion, Continuation
from sip_node.kernel.calendar cimport Calendar
from sip_node.kernel cimport events


cdef class AnyProgram(Continuation):
    cdef readonly AnyCompletion finished
    cdef object _clock
    cdef tuple _issued

    cpdef call_at(self, Calendar engine, long long time_ps, tuple call)
    @cython.locals(completion=AnyCompletion, call=tuple)
    cdef _make_call(self)
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
