"""Tiles of operands in TCM, and the sums in accumulators, in C. In Python it is tile_data.py.

The product of two tiles of float16 or float32 is numpy's, in float64, so its bits are those of
`accumulate`. The conversions before and after it are loops here: as calls of numpy they cost more
than the product.
"""

from cpython.buffer cimport PyBUF_C_CONTIGUOUS, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_FromStringAndSize
from cpython.bytes cimport PyBytes_AS_STRING
from libc.stdint cimport uint16_t
from libc.string cimport memcpy
from zlib import crc32

import numpy as np

from runtime.language.gemm import accumulate
from sip_node.kernel.checksums cimport crc32_of

cdef extern from *:
    """
    #include <stddef.h>
    #include <stdint.h>
    #include <string.h>

    /* Exact for every finite value. Without branches, so that compilers use vectors, and without
       arithmetic on subnormal numbers, which another library may flush to zero.
       Returns whether all are finite. */
    static int kernbench_widen_halves(const uint16_t *halves, double *wide, ptrdiff_t count)
    {
        uint32_t infinite = 0;
        for (ptrdiff_t index = 0; index < count; index++) {
            uint32_t half = halves[index], exponent = half & 0x7c00;
            uint32_t bits = ((half & 0x7fff) << 13) + 0x38000000u;
            float normal, small = (float) (int32_t) (half & 0x3ff) * 0x1p-24f, value;
            memcpy(&normal, &bits, sizeof normal);
            value = exponent ? normal : small;
            memcpy(&bits, &value, sizeof bits);
            bits |= (half & 0x8000) << 16;
            memcpy(&value, &bits, sizeof value);
            infinite |= exponent == 0x7c00;
            wide[index] = value;
        }
        return !infinite;
    }

    #if defined(__x86_64__) && defined(__GNUC__)
    #include <cpuid.h>
    #include <immintrin.h>
    /* The same by the instruction for it, which is exact for subnormal halves in every mode of the
       arithmetic, where the processor has it. */
    __attribute__((target("avx,f16c")))
    static int kernbench_convert_halves(const uint16_t *halves, double *wide, ptrdiff_t count)
    {
        uint32_t infinite = 0;
        ptrdiff_t index = 0;
        for (; index + 4 <= count; index += 4) {
            __m128 floats = _mm_cvtph_ps(_mm_loadl_epi64((const __m128i *) (halves + index)));
            _mm256_storeu_pd(wide + index, _mm256_cvtps_pd(floats));
        }
        for (ptrdiff_t each = 0; each < count; each++)
            infinite |= (halves[each] & 0x7c00) == 0x7c00;
        return kernbench_widen_halves(halves + index, wide + index, count - index) && !infinite;
    }
    static int kernbench_has_f16c(void)
    {
        /* Read once: a virtual machine takes longer to answer than a tile takes. The builtin of the
           compiler has a name for this feature only in new versions. */
        static int known = -1;
        unsigned eax, ebx, ecx = 0, edx;
        if (known < 0)
            known = __builtin_cpu_supports("avx") && __get_cpuid(1, &eax, &ebx, &ecx, &edx) &&
                    (ecx & bit_F16C);
        return known;
    }
    static int kernbench_widen(const uint16_t *halves, double *wide, ptrdiff_t count)
    {
        if (kernbench_has_f16c())
            return kernbench_convert_halves(halves, wide, count);
        return kernbench_widen_halves(halves, wide, count);
    }
    #else
    #define kernbench_widen kernbench_widen_halves
    #endif

    static int kernbench_widen_floats(const float *floats, double *wide, ptrdiff_t count)
    {
        uint32_t infinite = 0;
        for (ptrdiff_t index = 0; index < count; index++) {
            uint32_t bits;
            memcpy(&bits, &floats[index], sizeof bits);
            infinite |= (bits & 0x7f800000u) == 0x7f800000u;
            wide[index] = floats[index];
        }
        return !infinite;
    }
    """
    bint kernbench_widen(const uint16_t *, double *, Py_ssize_t) noexcept nogil
    bint kernbench_widen_floats(const float *, double *, Py_ssize_t) noexcept nogil

cdef object matmul = np.matmul, empty = np.empty, ndarray = np.ndarray, float32 = np.dtype("f4")
# By (m, k, n), and those of the last step: most steps have the shape of the step before.
cdef dict wide_tiles = {}
cdef WideTiles last_wide = None


cdef class TileData:
    """Made by `loaded_tile` or `cut_tile`."""

    @property
    def data(self):
        if self.array is None and self.content:
            self.array = ndarray(self.shape, self.dtype.numpy, self.content)
        return self.array


cdef class TileSums:
    """The sums of an output tile, of float32 without an array."""

    def __init__(self, tuple shape not None):
        self.shape = shape

    @property
    def data(self):
        return self.array if self.sums is NULL else ndarray(self.shape, float32, self.summed)

    @data.setter
    def data(self, array):
        self.array, self.sums, self.summed = array, NULL, None

    cpdef int add(self, TileData a, TileData b) except -1:
        cdef WideTiles wide
        cdef bint begins = self.sums is NULL and self.array is None
        if a.elements is not NULL and b.elements is not NULL and a.kind == b.kind:
            wide = wide_for(a.shape[0], a.shape[1], b.shape[1])
            if wide.multiply(a, b):
                if self.sums is NULL:
                    self.begin_sums()
                add_products(self.sums, wide, not begins)
                return 0
        # Infinities, too: they raise warnings of numpy, which it suppresses at some cost.
        elements_a, elements_b = a.data, b.data
        if elements_a is not None and elements_b is not None:
            self.data = accumulate(self.data, elements_a, elements_b)
        return 0

    cpdef unsigned int checksum(self) except? 0xffffffff:
        if self.sums is not NULL:
            return crc32_of(self.sums, len(self.summed))
        return 0 if self.array is None else crc32(self.array)

    cdef int begin_sums(self) except -1:
        """Keep the sums at `sums`: those of the array, or no value yet."""
        cdef Py_ssize_t nbytes = <Py_ssize_t> self.shape[0] * <Py_ssize_t> self.shape[1] * 4
        self.summed = PyByteArray_FromStringAndSize(NULL, nbytes)
        self.sums = <float *> PyByteArray_AS_STRING(self.summed)
        if self.array is not None:
            memcpy(self.sums, address_of(self.array), nbytes)
        self.array = None
        return 0


cdef class WideTiles:
    """Arrays of float64 for tiles of one shape, and where their elements are."""

    def __init__(self, Py_ssize_t m, Py_ssize_t k, Py_ssize_t n):
        self.m, self.k, self.n = m, k, n
        self.a, self.b, self.product = empty((m, k)), empty((k, n)), empty((m, n))
        self.a_elements, self.b_elements = address_of(self.a), address_of(self.b)
        self.products = address_of(self.product)

    cdef bint multiply(self, TileData a, TileData b) except -1:
        """Compute the product of two tiles; returns whether all their elements are finite."""
        if not widen(a.elements, self.a_elements, self.m * self.k, a.kind):
            return False
        if not widen(b.elements, self.b_elements, self.k * self.n, b.kind):
            return False
        matmul(self.a, self.b, self.product)
        return True


cpdef TileData loaded_tile(
    tuple inputs, object dtype, long long nbytes, bytes content, unsigned int checksum
):
    cdef TileData tile = TileData.__new__(TileData)
    block = inputs[0]
    tile.inputs, tile.shape, tile.element = inputs, block.shape, block.dtype
    tile.nbytes, tile.dtype, tile.content, tile.checksum = nbytes, dtype, content, checksum
    tile.kind = HALF if tile.element == "f16" else SINGLE if tile.element == "f32" else OTHER
    if content and tile.kind != OTHER:
        tile.elements = PyBytes_AS_STRING(content)
    return tile


cpdef TileData cut_tile(
    object block, object dtype, long long nbytes, object data, Py_ssize_t row, Py_ssize_t column
):
    cdef bytes content = b""
    if data is not None:
        height, width = block.shape
        content = data[row : row + height, column : column + width].tobytes()
    return loaded_tile(
        (block,), dtype, nbytes, content, crc32_of(PyBytes_AS_STRING(content), len(content))
    )


cdef WideTiles wide_for(Py_ssize_t m, Py_ssize_t k, Py_ssize_t n):
    """The arrays for a shape."""
    global last_wide
    cdef WideTiles wide = last_wide
    if wide is None or wide.m != m or wide.k != k or wide.n != n:
        key = (m, k, n)
        wide = wide_tiles.get(key)
        if wide is None:
            wide = wide_tiles[key] = WideTiles(m, k, n)
        last_wide = wide
    return wide


cdef double *address_of(array) except NULL:
    """The first element of an array, which stays there as long as the array exists."""
    cdef Py_buffer buffer
    PyObject_GetBuffer(array, &buffer, PyBUF_C_CONTIGUOUS)
    PyBuffer_Release(&buffer)
    return <double *> buffer.buf


cdef bint widen(const char *narrow, double *wide, Py_ssize_t count, Element kind) noexcept nogil:
    """Convert elements to float64; returns whether all are finite."""
    if kind == HALF:
        return kernbench_widen(<const uint16_t *> narrow, wide, count)
    return kernbench_widen_floats(<const float *> narrow, wide, count)


cdef void add_products(float *sums, WideTiles wide, bint adds) noexcept:
    """Add the product to the sums, or set them to it; rounds once."""
    cdef Py_ssize_t index, count = wide.m * wide.n
    cdef double *products = wide.products
    if adds:
        for index in range(count):
            sums[index] = <float> (sums[index] + products[index])
    else:
        for index in range(count):
            sums[index] = <float> products[index]
