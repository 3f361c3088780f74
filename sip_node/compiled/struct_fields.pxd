"""The fields of msgspec Structs, read at their offsets: see struct_fields.pyx."""

from cpython.object cimport PyObject


cdef Py_ssize_t offset_of(object struct, str name) except -1


cdef inline object field_at(object struct, Py_ssize_t offset):
    """The field at an offset of `offset_of`, for an instance of that class or of a subclass."""
    return <object> (<PyObject **> (<char *> <void *> struct + offset))[0]
