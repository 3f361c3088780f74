"""The sources from which the library was built."""

cdef extern from *:
    """
    #ifndef KERNBENCH_SOURCES
    #error "KERNBENCH_SOURCES is the digest of the sources; hatch_build.py defines it"
    #endif
    """
    const char *KERNBENCH_SOURCES

SOURCES = KERNBENCH_SOURCES.decode()
