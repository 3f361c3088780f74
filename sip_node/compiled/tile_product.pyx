"""The arithmetic of one step of the GEMM engine on tiles of float16 and float32.

The product of the tiles is numpy's, in float64, so its bits are those of the reference. The
conversions before and after it are loops here: as calls of numpy they cost more than the product.
"""

from cpython.buffer cimport PyBUF_C_CONTIGUOUS, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport uint16_t

import numpy as np

from sip_node.compiled.tile_data cimport HALF, SINGLE, Element, TileData
from sip_node.compiled.tile_token cimport OutputTile

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

cdef object matmul = np.matmul, empty = np.empty, float32 = np.float32
cdef object HALVES = np.dtype(np.float16), FLOATS = np.dtype(np.float32)


cdef class WideTiles:
    """Arrays of float64 for tiles of one shape, and where their elements are."""

    def __init__(self, Py_ssize_t m, Py_ssize_t k, Py_ssize_t n):
        self.m, self.k, self.n = m, k, n
        self.a, self.b, self.product = empty((m, k)), empty((k, n)), empty((m, n))
        self.a_elements = address_of(self.a)
        self.b_elements = address_of(self.b)
        self.products = address_of(self.product)

    cdef bint multiply(self, const char *a, const char *b, Element kind) except -1:
        """Compute the product of two tiles; returns whether all their elements are finite."""
        if not widen(a, self.a_elements, self.m * self.k, kind):
            return False
        if not widen(b, self.b_elements, self.k * self.n, kind):
            return False
        matmul(self.a, self.b, self.product)
        return True


cdef class TileProducts:
    """`accumulate(acc, a, b)` as `reference` computes it, which computes all other types."""

    def __init__(self, reference):
        self.reference, self.wide_tiles = reference, {}

    def accumulate(self, acc, a, b):
        """`acc + a @ b` of one tile in float32; `acc` None stands for zeros."""
        cdef Element kind = HALF if a.dtype is HALVES else SINGLE
        cdef WideTiles wide
        if not (kind == HALF or a.dtype is FLOATS) or b.dtype is not a.dtype:
            return self.reference(acc, a, b)
        if not (a.flags.c_contiguous and b.flags.c_contiguous):
            return self.reference(acc, a, b)
        wide = self.wide(a.shape[0], a.shape[1], b.shape[1])
        if not wide.multiply(<const char *> address_of(a), <const char *> address_of(b), kind):
            # Infinities raise warnings of numpy, which the reference suppresses at some cost.
            return self.reference(acc, a, b)
        sums = empty((a.shape[0], b.shape[1]), float32) if acc is None else acc.copy()
        add(<float *> address_of(sums), wide, acc is not None)
        return sums

    cdef bint add_step(self, OutputTile output, TileData a, TileData b, bint first) except -1:
        """Add `a @ b` to an output tile; returns False for what `accumulate` has to compute."""
        cdef WideTiles wide
        cdef bint adds = True
        if a.elements is NULL or b.elements is NULL or a.kind != b.kind:
            return False
        if first:
            adds = output.start is not None
            if adds and output.start.elements is NULL:
                return False
        elif output.sums is NULL:
            return False
        wide = self.wide(a.shape[0], a.shape[1], b.shape[1])
        if not wide.multiply(a.elements, b.elements, a.kind):
            return False
        if first:
            output.begin_sums()
        add(output.sums, wide, adds)
        return True

    cdef WideTiles wide(self, Py_ssize_t m, Py_ssize_t k, Py_ssize_t n):
        """The arrays for a shape; most steps have that of the step before."""
        cdef WideTiles last = self.last
        if last is None or last.m != m or last.k != k or last.n != n:
            key = (m, k, n)
            last = self.wide_tiles.get(key)
            if last is None:
                last = self.wide_tiles[key] = WideTiles(m, k, n)
            self.last = last
        return last


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


cdef void add(float *sums, WideTiles wide, bint adds) noexcept:
    """Add the product to the sums, or set them to it; rounds once."""
    cdef Py_ssize_t index, count = wide.m * wide.n
    cdef double *products = wide.products
    if adds:
        for index in range(count):
            sums[index] = <float> (sums[index] + products[index])
    else:
        for index in range(count):
            sums[index] = <float> products[index]
