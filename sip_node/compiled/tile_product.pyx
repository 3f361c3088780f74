"""The arithmetic of one step of the GEMM engine on tiles of float16 and float32.

The product of the tiles is numpy's, in float64, so its bits are those of the reference. The
conversions before and after it are loops here: as calls of numpy they cost more than the product.
"""

from cpython.buffer cimport PyBUF_C_CONTIGUOUS, PyBUF_WRITABLE
from cpython.buffer cimport PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport uint16_t

import numpy as np

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
cdef object HALF = np.dtype(np.float16), SINGLE = np.dtype(np.float32)


cdef class TileProducts:
    """`accumulate(acc, a, b)` as `reference` computes it, which computes all other types."""

    cdef object reference
    # By shape, arrays of float64 that every step uses again: both operands and their product.
    cdef dict arrays

    def __init__(self, reference):
        self.reference, self.arrays = reference, {}

    def accumulate(self, acc, a, b):
        """`acc + a @ b` of one tile in float32; `acc` None stands for zeros."""
        cdef tuple arrays
        kind = a.dtype
        if not (kind is HALF or kind is SINGLE) or b.dtype is not kind:
            return self.reference(acc, a, b)
        if not (a.flags.c_contiguous and b.flags.c_contiguous):
            return self.reference(acc, a, b)
        key = (a.shape, b.shape[1])
        found = self.arrays.get(key)
        if found is None:
            (m, k), n = key
            found = self.arrays[key] = (empty((m, k)), empty((k, n)), empty((m, n)))
        arrays = <tuple> found
        if not widen(a, arrays[0], kind is HALF) or not widen(b, arrays[1], kind is HALF):
            # Infinities raise warnings of numpy, which the reference suppresses at some cost.
            return self.reference(acc, a, b)
        matmul(arrays[0], arrays[1], arrays[2])
        sums = empty((a.shape[0], b.shape[1]), float32)
        narrow(acc, arrays[2], sums)
        return sums


cdef bint widen(source, target, bint halves) except -1:
    """Convert elements to float64; returns whether all are finite."""
    cdef Py_buffer narrow_buffer, wide_buffer
    cdef Py_ssize_t count
    cdef bint finite
    PyObject_GetBuffer(source, &narrow_buffer, PyBUF_C_CONTIGUOUS)
    PyObject_GetBuffer(target, &wide_buffer, PyBUF_C_CONTIGUOUS | PyBUF_WRITABLE)
    count = wide_buffer.len // sizeof(double)
    if halves:
        finite = kernbench_widen(
            <uint16_t *> narrow_buffer.buf, <double *> wide_buffer.buf, count
        )
    else:
        finite = kernbench_widen_floats(
            <float *> narrow_buffer.buf, <double *> wide_buffer.buf, count
        )
    PyBuffer_Release(&wide_buffer)
    PyBuffer_Release(&narrow_buffer)
    return finite


cdef int narrow(acc, product, sums) except -1:
    """Round `acc + product` to float32 once."""
    cdef Py_buffer before, wide, after
    cdef Py_ssize_t index, count
    cdef double *products
    cdef float *rounded
    PyObject_GetBuffer(product, &wide, PyBUF_C_CONTIGUOUS)
    PyObject_GetBuffer(sums, &after, PyBUF_C_CONTIGUOUS | PyBUF_WRITABLE)
    products, rounded = <double *> wide.buf, <float *> after.buf
    count = wide.len // sizeof(double)
    if acc is None:
        for index in range(count):
            rounded[index] = <float> products[index]
    else:
        PyObject_GetBuffer(acc, &before, PyBUF_C_CONTIGUOUS)
        for index in range(count):
            rounded[index] = <float> ((<float *> before.buf)[index] + products[index])
        PyBuffer_Release(&before)
    PyBuffer_Release(&after)
    PyBuffer_Release(&wide)
    return 0
