"""Lists of objects that are in one list at most, in C: see linked_list.py."""


cdef class Linked:
    """An object of a list."""


cdef class LinkedList:
    """Linked objects in order."""


cdef class LinkedGroup(Linked):
    """An object with a list of members."""

    def __cinit__(self):
        self.members = LinkedList()


cdef class LinkedMember(Linked):
    """An object that is dealt to its group."""
