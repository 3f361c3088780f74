"""Fetches memory into the caches before it is needed; any address is allowed."""

cdef extern from *:
    void prefetch "__builtin_prefetch"(const void *address, int writes, int locality) nogil
