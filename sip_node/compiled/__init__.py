"""The calendar of the compiled core, and twins in C of classes that are not one text yet.

Events. `calendar.Calendar` keeps the events of the core as C structs. An `Actor` is what such an
event calls: its method `act` receives the struct and one Python object, usually a packet. Calls of
Python functions (`Engine.at`) are events of the same heap. SimPy's own events stay in SimPy's queue
and are merged with the heap by their keys.

A *reference* is a class in Python, in the room that it belongs to. Its *twin* here does the same
with C integers and C arrays: it makes the same insertions into the calendar in the same order, so
every event has the same key (time, priority, id), and every tie has the same outcome. The module of
the reference ends with the choice of one of them. No twin is added any more: a component is one
text, see docs/architecture.md.
"""

from runtime.core.compiled.library import path_entries

__path__.extend(path_entries())
