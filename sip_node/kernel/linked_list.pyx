"""Lists of objects that are in one list at most, in C: see linked_list.py."""


cdef class Linked:
    """An object of a list."""


cdef class LinkedList:
    """Linked objects in order."""
