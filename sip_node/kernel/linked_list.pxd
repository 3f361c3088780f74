"""Lists of objects that are in one list at most, in C; linked_list.py has what each function does.

References are borrowed: the lists count none, so that a list is as fast as one of C structs.
"""


cdef class Linked:
    cdef void *next


cdef class LinkedList:
    cdef void *first
    cdef void *last


cdef inline int put(LinkedList items, Linked item) noexcept:
    item.next = NULL
    if items.first:
        (<Linked> items.last).next = <void *> item
    else:
        items.first = <void *> item
    items.last = <void *> item
    return 0


cdef inline int insert(LinkedList items, Linked before, Linked item) noexcept:
    if before is None:
        item.next, items.first = items.first, <void *> item
    else:
        item.next, before.next = before.next, <void *> item
    if not item.next:
        items.last = <void *> item
    return 0


cdef inline bint is_empty(LinkedList items) noexcept:
    return not items.first


cdef inline bint has_one(LinkedList items) noexcept:
    return items.first == items.last


cdef inline Linked first(LinkedList items):
    return <Linked> items.first if items.first else None


cdef inline Linked take(LinkedList items):
    cdef void *found = items.first
    items.first = NULL
    return <Linked> found if found else None


cdef inline Linked following(Linked item):
    return <Linked> item.next if item.next else None
