"""Lists of objects that are in one list at most, in C; linked_list.py has what each function does.

References are borrowed: the lists count none, so that a list is as fast as one of C structs.
"""


cdef class Linked:
    cdef void *next


cdef class LinkedList:
    cdef void *first
    cdef void *last


cdef class LinkedGroup(Linked):
    cdef LinkedList members


cdef class LinkedMember(Linked):
    cdef LinkedGroup group


cdef inline void _append(void *items, void *item) noexcept:
    (<Linked> item).next = NULL
    if (<LinkedList> items).first:
        (<Linked> (<LinkedList> items).last).next = item
    else:
        (<LinkedList> items).first = item
    (<LinkedList> items).last = item


cdef inline int put(LinkedList items, Linked item) noexcept:
    _append(<void *> items, <void *> item)
    return 0


cdef inline int insert(LinkedList items, Linked before, Linked item) noexcept:
    if before is None:
        item.next, items.first = items.first, <void *> item
    else:
        item.next, before.next = before.next, <void *> item
    if not item.next:
        items.last = <void *> item
    return 0


cdef inline int deal(LinkedList items, LinkedList groups) noexcept:
    cdef void *item = items.first
    cdef void *group
    cdef void *members
    cdef void *following
    items.first = NULL
    while item:
        following = (<Linked> item).next
        group = <void *> (<LinkedMember> item).group
        members = <void *> (<LinkedGroup> group).members
        if not (<LinkedList> members).first:
            _append(<void *> groups, group)
        _append(members, item)
        item = following
    return 0


cdef inline bint is_empty(LinkedList items) noexcept:
    return not items.first


cdef inline bint has_one(LinkedList items) noexcept:
    return items.first == items.last


cdef inline Linked first(LinkedList items):
    if items.first:
        return <Linked> items.first
    return None


cdef inline Linked take(LinkedList items):
    cdef void *item = items.first
    items.first = NULL
    if item:
        return <Linked> item
    return None


cdef inline Linked following(Linked item):
    if item.next:
        return <Linked> item.next
    return None
