"""Results that will exist at some simulated time, in C; see `sip_node.chip.completion`."""

cimport cython


cdef class Continuation:
    """A callback in C: what goes on when a result exists."""

    cdef int resume(self, Completion done) except -1:
        """Go on with a result."""
        raise NotImplementedError(type(self).__name__)


@cython.freelist(256)
cdef class Completion:
    """The twin of `ReferenceCompletion`; its callbacks are functions or continuations."""

    @classmethod
    def __class_getitem__(cls, _):
        return cls

    @property
    def value(self):
        """See the reference."""
        if not self.done or self.error is not None:
            raise AttributeError("a completion has a value after it has completed without error")
        return self.result

    def complete(self, value):
        """See the reference."""
        self.succeed(value)

    def fail(self, error not None):
        """See the reference."""
        self.error = error
        self.finish()

    def then(self, callback not None):
        """See the reference."""
        self.attach(callback)

    cdef int succeed(self, object value) except -1:
        """`complete` for classes in C."""
        self.result = value
        return self.finish()

    cdef int attach(self, object callback) except -1:
        """`then` for classes in C."""
        if self.done:
            call(callback, self)
        elif self.callback is None:
            self.callback = callback
        elif self.others is None:
            self.others = [callback]
        else:
            self.others.append(callback)
        return 0

    cdef int finish(self) except -1:
        assert not self.done, "a completion completes once"
        self.done = True
        callback, others = self.callback, self.others
        # A callback may refer to this object: in a cycle, neither would ever be deleted.
        self.callback = self.others = None
        if callback is not None:
            call(callback, self)
        if others is not None:
            for each in others:
                call(each, self)
        return 0


cdef int call(object callback, Completion done) except -1:
    if isinstance(callback, Continuation):
        return (<Continuation> callback).resume(done)
    callback(done)
    return 0


cpdef Completion completed(object value):
    """The twin of `reference_completed`."""
    cdef Completion done = Completion.__new__(Completion)
    done.result, done.done = value, True
    return done


cdef class AllOf(Continuation):
    """Counts down the completions of a joint one."""

    cdef Completion joint
    cdef list completions
    cdef Py_ssize_t left

    cdef int resume(self, Completion done) except -1:
        cdef Completion each
        self.left -= 1
        if self.joint.done:
            # It has failed already, and completes only once.
            return 0
        if done.error is not None:
            self.joint.fail(done.error)
        elif not self.left:
            self.joint.succeed([each.result for each in self.completions])
        return 0


cpdef Completion all_of(completions):
    """The twin of `reference_all_of`."""
    cdef Completion each
    cdef AllOf parts = AllOf.__new__(AllOf)
    parts.joint, parts.completions = Completion.__new__(Completion), list(completions)
    parts.left = len(parts.completions)
    if not parts.left:
        parts.joint.succeed([])
    for each in parts.completions:
        each.attach(parts)
    return parts.joint
