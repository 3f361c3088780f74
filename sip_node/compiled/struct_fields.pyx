"""The fields of msgspec Structs, read at their offsets.

A Struct keeps each field in a slot, as `__slots__` does. The attribute is a descriptor with the
offset of the slot: to look it up takes ten times as long as to read the slot.
"""

cdef extern from *:
    """
    #include <structmember.h>
    static Py_ssize_t slot_offset(PyObject *descriptor) {
        if (!PyObject_TypeCheck(descriptor, &PyMemberDescr_Type))
            return -1;
        return ((PyMemberDescrObject *) descriptor)->d_member->offset;
    }
    """
    Py_ssize_t slot_offset(object descriptor)


cdef Py_ssize_t offset_of(object struct, str name) except -1:
    """The offset of a field in all instances of a class; raises `TypeError` if it is no slot."""
    cdef Py_ssize_t offset = slot_offset(getattr(struct, name))
    if offset < 0:
        raise TypeError(f"{struct.__name__}.{name} is no slot")
    return offset
