"""The CRC-32 of `zlib.crc32`, computed by carry-less multiplication where the processor has it.

Every tile that an engine moves has a checksum in the op log. A CRC is a remainder modulo a
polynomial P, and so is every part of a message: 16 bytes that are followed by n bits may be
replaced by their product with x^n mod P, added to the bytes n bits later. Four such products run
side by side; what is left at the end are 16 bytes with the remainder of the message, and its last
bytes
(Gopal et al., "Fast CRC computation for generic polynomials using PCLMULQDQ", Intel, 2009).
"""

cdef extern from *:
    """
    #include <stddef.h>
    #include <stdint.h>

    #define KERNBENCH_POLYNOMIAL 0xedb88320u  /* of CRC-32, the lowest power in the highest bit */

    static uint32_t kernbench_crc_tables[8][256];

    /* Table k has the remainders of a byte that is followed by k bytes. */
    static void kernbench_make_crc_tables(void)
    {
        for (uint32_t byte = 0; byte < 256; byte++) {
            uint32_t rest = byte;
            for (int bit = 0; bit < 8; bit++)
                rest = rest >> 1 ^ (rest & 1 ? KERNBENCH_POLYNOMIAL : 0);
            kernbench_crc_tables[0][byte] = rest;
        }
        for (int behind = 1; behind < 8; behind++)
            for (int byte = 0; byte < 256; byte++) {
                uint32_t rest = kernbench_crc_tables[behind - 1][byte];
                kernbench_crc_tables[behind][byte] =
                    rest >> 8 ^ kernbench_crc_tables[0][rest & 255];
            }
    }

    static uint32_t kernbench_crc_by_table(uint32_t rest, const uint8_t *content, size_t nbytes)
    {
        uint32_t (*of)[256] = kernbench_crc_tables;
        for (; nbytes >= 8; nbytes -= 8, content += 8)
            rest = of[7][(rest ^ content[0]) & 255] ^ of[6][(rest >> 8 ^ content[1]) & 255] ^
                   of[5][(rest >> 16 ^ content[2]) & 255] ^ of[4][rest >> 24 ^ content[3]] ^
                   of[3][content[4]] ^ of[2][content[5]] ^ of[1][content[6]] ^ of[0][content[7]];
        for (; nbytes; nbytes--, content++)
            rest = rest >> 8 ^ of[0][(rest ^ *content) & 255];
        return rest;
    }

    #if defined(__x86_64__) && defined(__GNUC__)
    #include <immintrin.h>
    /* Replaces 16 bytes by what they are to the bytes at a distance: `powers` are x to the power of
       that distance in bits, plus 32 for the first half and minus 32 for the second. */
    __attribute__((target("pclmul")))
    static inline __m128i kernbench_moved(__m128i bytes, __m128i powers)
    {
        return _mm_xor_si128(_mm_clmulepi64_si128(bytes, powers, 0x00),
                             _mm_clmulepi64_si128(bytes, powers, 0x11));
    }
    __attribute__((target("pclmul")))
    static uint32_t kernbench_crc_by_products(uint32_t rest, const uint8_t *content, size_t nbytes)
    {
        const __m128i by_64_bytes = _mm_set_epi64x(0x1c6e41596, 0x154442bd4);
        const __m128i by_16_bytes = _mm_set_epi64x(0x0ccaa009e, 0x1751997d0);
        const __m128i *from = (const __m128i *) content;
        __m128i part[4];
        uint8_t last[16];
        for (int index = 0; index < 4; index++)
            part[index] = _mm_loadu_si128(from++);
        part[0] = _mm_xor_si128(part[0], _mm_cvtsi32_si128((int) rest));
        for (nbytes -= 64; nbytes >= 64; nbytes -= 64)
            for (int index = 0; index < 4; index++)
                part[index] = _mm_xor_si128(kernbench_moved(part[index], by_64_bytes),
                                            _mm_loadu_si128(from++));
        for (int index = 1; index < 4; index++)
            part[index] = _mm_xor_si128(kernbench_moved(part[index - 1], by_16_bytes), part[index]);
        _mm_storeu_si128((__m128i *) last, part[3]);
        rest = kernbench_crc_by_table(0, last, sizeof last);
        return kernbench_crc_by_table(rest, (const uint8_t *) from, nbytes);
    }
    #endif

    static uint32_t kernbench_crc32(const void *content, size_t nbytes)
    {
        static int has_products = -1;
        if (has_products < 0) {
            kernbench_make_crc_tables();
            has_products = 0;
    #if defined(__x86_64__) && defined(__GNUC__)
            has_products = !!__builtin_cpu_supports("pclmul");
    #endif
        }
    #if defined(__x86_64__) && defined(__GNUC__)
        if (has_products && nbytes >= 64)
            return ~kernbench_crc_by_products(~0u, (const uint8_t *) content, nbytes);
    #endif
        return ~kernbench_crc_by_table(~0u, (const uint8_t *) content, nbytes);
    }
    """
    unsigned int kernbench_crc32(const void *content, size_t nbytes) noexcept nogil


cdef unsigned int crc32_of(const void *content, size_t nbytes) noexcept nogil:
    return kernbench_crc32(content, nbytes)


cpdef unsigned int checksum_of(bytes data) except? 0:
    """The checksum of bytes."""
    return kernbench_crc32(<const char *> data, len(data))
