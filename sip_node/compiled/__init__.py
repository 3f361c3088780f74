"""What is in C only: the calendar, packed records, and the walk that fast-forward makes.

Events. `calendar.Calendar` keeps the events of the core as C structs. An `Actor` is what such an
event calls: its method `act` receives the struct and one Python object, usually a packet. Calls of
Python functions (`Engine.at`) are events of the same heap. SimPy's own events stay in SimPy's queue
and are merged with the heap by their keys.

Interpreted, the engine has SimPy's queue alone; it makes the same insertions in the same order, so
every event has the same key (time, priority, id), and every tie has the same outcome.
"""

from runtime.core.compiled.library import path_entries

__path__.extend(path_entries())
