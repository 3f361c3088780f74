"""Lists of objects that are in one list at most, in which nothing is allocated.

In C the lists count no references: the owner of lists holds the objects that can be in them, as
`CycleQueue` does.
"""

from typing import Any


class Linked:
    """An object of a list."""

    __slots__ = ("next",)

    def __init__(self) -> None:
        self.next: Any = None


class LinkedList:
    """Linked objects in order."""

    __slots__ = ("first", "last")

    def __init__(self) -> None:
        self.first: Any = None
        self.last: Any = None


class LinkedGroup(Linked):
    """An object with a list of members."""

    __slots__ = ("members",)

    def __init__(self) -> None:
        super().__init__()
        self.members = LinkedList()


class LinkedMember(Linked):
    """An object that is dealt to its group."""

    __slots__ = ("group",)

    def __init__(self) -> None:
        super().__init__()
        self.group: Any = None


def put(items: LinkedList, item: Linked) -> None:
    """Put an object behind the others."""
    item.next = None
    if items.first is None:
        items.first = item
    else:
        items.last.next = item
    items.last = item


def insert(items: LinkedList, before: Linked | None, item: Linked) -> None:
    """Put an object behind the object `before`, or in front of all."""
    if before is None:
        item.next, items.first = items.first, item
    else:
        item.next, before.next = before.next, item
    if item.next is None:
        items.last = item


def deal(items: LinkedList, groups: LinkedList) -> None:
    """Move the objects of a list to their groups; put those that had no member behind `groups`."""
    item = take(items)
    while item is not None:
        behind, group = item.next, item.group
        if is_empty(group.members):
            put(groups, group)
        put(group.members, item)
        item = behind


def is_empty(items: LinkedList) -> bool:
    """Whether the list has no object."""
    return items.first is None


def has_one(items: LinkedList) -> bool:
    """Whether a list that is not empty has one object."""
    return items.first is items.last


def first(items: LinkedList) -> Any:
    """The first object, or None."""
    return items.first


def following(item: Linked) -> Any:
    """The next object of the list, or None."""
    return item.next


def take(items: LinkedList) -> Any:
    """The first object, or None; the list is empty then, and the objects keep their order."""
    item, items.first = items.first, None
    return item
