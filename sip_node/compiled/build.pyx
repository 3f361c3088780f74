"""The sources from which the modules of this package were built."""

cdef extern from *:
    """
    #ifndef KERNBENCH_SOURCES
    #error "KERNBENCH_SOURCES is the digest of the sources; hatch_build.py defines it"
    #endif
    """
    const char *KERNBENCH_SOURCES

SOURCES = KERNBENCH_SOURCES.decode()
