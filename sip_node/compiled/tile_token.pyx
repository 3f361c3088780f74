"""A step of a product on its route through the stages, in C; see `sip_node.chip.pe.tile_token`."""

from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_FromStringAndSize
from libc.string cimport memcpy
from zlib import crc32

import numpy as np

from runtime.core.trace import Operand
from sip_node.compiled.checksum cimport crc32_of

cdef object ndarray = np.ndarray, float32 = np.dtype(np.float32), new_tuple = tuple.__new__


cdef class Stage(Actor):
    """An engine in C that tokens pass."""

    def __cinit__(self):
        self.takes_in_c = type(self).accept is Stage.accept

    def accept(self, Token token not None):
        """Take a token."""
        self.take(token)

    cdef int take(self, Token token) except -1:
        """`accept` for tokens."""
        raise NotImplementedError(type(self).__name__)


cdef class StepShape:
    """The twin of `ReferenceStepShape`."""

    def __init__(self, *, size, long long step_ps, macs, str accumulator not None,
                 long long output_bytes, dict inputs not None):
        self.size, self.step_ps, self.macs = size, step_ps, macs
        self.accumulator, self.output_bytes, self.inputs = accumulator, output_bytes, inputs


cdef class OutputTile:
    """The twin of `ReferenceOutputTile`, which keeps sums of float32 without an array."""

    def __init__(self, tuple shape not None, TileData start, TileData bias, target,
                 list memory not None):
        self.shape, self.start, self.bias = shape, start, bias
        self.target, self.memory = target, memory

    @property
    def data(self):
        """The sum, and in the end the result; None in a run without data."""
        if self.sums is NULL:
            return self.array
        return ndarray(self.shape, float32, self.summed)

    @data.setter
    def data(self, array):
        self.array, self.sums, self.summed = array, NULL, None

    def take_accumulator(self, registers):
        """See the reference."""
        self.accumulator = registers.accumulators.take()
        self.address = registers.accumulator(self.accumulator)

    def registers(self, dtype):
        """The accumulator as an operand."""
        return Operand(self.address, self.shape, dtype)

    cdef int begin_sums(self) except -1:
        """Keep the sum at `sums`: the initial value, or no value yet."""
        cdef Py_ssize_t nbytes = <Py_ssize_t> self.shape[0] * <Py_ssize_t> self.shape[1] * 4
        self.summed = PyByteArray_FromStringAndSize(NULL, nbytes)
        self.sums = <float *> PyByteArray_AS_STRING(self.summed)
        if self.start is not None:
            memcpy(self.sums, self.start.elements, nbytes)
        self.array = None
        return 0

    cdef unsigned int checksum(self) except? 0xffffffff:
        """The CRC-32 of the sum, 0 without data."""
        if self.sums is not NULL:
            return crc32_of(self.sums, len(self.summed))
        return 0 if self.array is None else crc32(self.array)


cdef class Token:
    """The twin of `ReferenceTileToken`; `TokenSource` makes it."""

    @property
    def tile(self):
        """The step as a `Tile`."""
        return new_tuple(
            self.tile_type, (self.rows, self.depth, self.columns, self.first, self.last)
        )

    def advance(self):
        """Go to the next stage of the route, if there is one."""
        self.go_on()

    cdef int go_on(self) except -1:
        cdef int passed = self.passed
        if passed == len(self.route):
            return 0
        self.passed = passed + 1
        stage = self.route[passed]
        if isinstance(stage, Stage) and (<Stage> stage).takes_in_c:
            return (<Stage> stage).take(self)
        stage.accept(self)
        return 0
