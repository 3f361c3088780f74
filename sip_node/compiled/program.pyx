"""Programs that block on simulated time, in C; see `sip_node.programs.program` and
`program_stacks`.
"""

from contextvars import copy_context

from greenlet import GreenletExit, getcurrent, greenlet

from sip_node.chip.failure import ProgramDropped

from sip_node.chip.completion cimport AnyCompletion as Completion, Continuation


cdef class ProgramStacks:
    """The twin of `ReferenceProgramStacks`; `serve` is what its greenlets run."""

    def __init__(self, serve):
        self.loop, self.serve, self.idle = getcurrent(), serve, []

    cpdef take(self, context):
        """See the reference."""
        taken = self.idle.pop() if self.idle else self.new()
        taken.gr_context = context
        return taken

    cpdef give_back(self, stack):
        """See the reference."""
        stack.gr_context = None
        self.idle.append(stack)

    cdef object new(self):
        stack = greenlet(self.serve, parent=self.loop)
        stack.switch(self.loop)
        return stack


cdef class Program(Continuation):
    """The twin of `ReferenceProgram`; it goes on with what it waits for."""

    def __init__(self, main, ProgramStacks stacks not None, context=None, clock=None):
        self.main, self.clock = main, clock
        self.stacks = stacks
        self.greenlet = self.stacks.take(copy_context() if context is None else context)
        self.to_program, self.to_loop = self.greenlet.switch, getcurrent().switch
        self.finished = Completion.__new__(Completion)

    @property
    def frame(self):
        """See the reference."""
        return None if self.finished.done else self.greenlet.gr_frame

    def start(self):
        """See the reference."""
        self.enter(self.run_main, self.to_program)

    def call(self, start, tuple args not None):
        """See the reference."""
        cdef Completion completion = called(start, args)
        if completion.done:
            self.resume(completion)
        else:
            completion.then(self)

    def wait(self, start, *args):
        """See the reference."""
        assert getcurrent() is self.greenlet, "only the program itself can wait"
        try:
            return self.to_loop((start, args))
        except GreenletExit as end:
            raise ProgramDropped from end

    def sleep(self):
        """See the reference."""
        assert getcurrent() is self.greenlet, "only the program itself can sleep"
        try:
            return self.to_loop(None)
        except GreenletExit as end:
            raise ProgramDropped from end

    def run_main(self):
        """The whole program, in its greenlet; see `ReferenceProgram._body`."""
        main, self.main = self.main, None
        assert main is not None
        try:
            value = main()
        except ProgramDropped:
            raise
        except BaseException as error:
            self.finished.fail(error)
        else:
            self.finished.complete(value)

    cdef int resume(self, Completion done) except -1:
        """Let the program, which waits, go on with the result of its call."""
        if done.error is None:
            return self.enter(done.result, self.to_program)
        return self.enter(done.error, self.greenlet.throw)

    cdef int enter(self, object value, object switch) except -1:
        """Switch to the program and make its calls, until one does not complete at once."""
        cdef Completion completion
        while True:
            if self.clock is not None:
                self.clock.enter()
            call = switch(value)
            if self.clock is not None:
                self.clock.leave()
            if call is None:
                if self.finished.done:
                    self.stacks.give_back(self.greenlet)
                return 0
            start, args = call
            completion = called(start, args)
            if not completion.done:
                return completion.then(self)
            if completion.error is None:
                switch, value = self.to_program, completion.result
            else:
                switch, value = self.greenlet.throw, completion.error


cdef Completion called(object start, tuple args):
    cdef Completion failed
    try:
        return start(*args)
    except Exception as error:
        failed = Completion.__new__(Completion)
        failed.fail(error)
        return failed
