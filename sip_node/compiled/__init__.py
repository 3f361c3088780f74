"""The compiled core of an LP: C twins of the classes through which most events of a run pass.

A *reference* is a class in Python, in the room that it belongs to. Its *twin* here does the same
with C integers and C arrays. The two are equal in what a simulation can observe: a twin makes the
same insertions into the calendar in the same order as its reference, so every event has the same
key (time, priority, id), and every tie has the same outcome. A property test compares both on
random machines, and the suite runs with either.

Events. `calendar.Calendar` keeps the events of the core as C structs. An `Actor` is what such an
event calls: its method `act` receives the struct and one Python object, usually a packet. Calls of
Python functions (`Engine.at`) are events of the same heap. SimPy's own events stay in SimPy's queue
and are merged with the heap by their keys.

A new twin, step by step:

1. The reference is a small class with its loop in one place; other classes use it by few methods.
2. `NAME.pxd` declares the C fields and methods, `NAME.pyx` defines them, `NAME.pyi` has what Python
   may use. The build compiles every `.pyx` of this package; there is no list of them.
3. State that an event needs is in the struct `Event`, or in the actor. Python objects that wait for
   an event are its `subject`; the calendar holds them where the garbage collector sees them. Raw
   pointers refer only to what the actor keeps alive.
4. A twin calls another twin by its C methods, and a class in Python by its Python methods. It tests
   which of them it has once, when it is built.
5. The module of the reference ends with the choice: `IS_COMPILED` of `runtime.core.compiled.choice`
   selects the twin.
6. Time and bytes are `long long`; products of them are computed with 128 bits.
"""

from runtime.core.compiled.library import path_entries

__path__.extend(path_entries())
