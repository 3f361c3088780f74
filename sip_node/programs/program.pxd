cimport cython

from sip_node.chip.completion cimport AnyCompletion, Continuation


cdef class Program(Continuation):
    cdef readonly AnyCompletion finished
    cdef object _main, _stacks, _clock, _greenlet
    # The switches to the program and to the event loop.
    cdef object _to_program, _to_loop

    @cython.locals(completion=AnyCompletion)
    cpdef call(self, object start, tuple args)
    @cython.locals(completion=AnyCompletion, call=tuple)
    cdef _enter(self, object value, object switch)


cdef AnyCompletion _called(object start, tuple args)
