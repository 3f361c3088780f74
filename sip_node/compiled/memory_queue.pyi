"""The transaction queue of a memory in C, as Python sees it."""

from collections.abc import Callable
from typing import Any

from sip_node.compiled.calendar import Actor, Calendar

class Access:
    message: Any
    offset: int
    nbytes: int
    arrived_ps: int
    tail_ps: int
    writes: bool
    begun: Callable[[int, int, int], None]
    rows: Any
    begin: int
    def __init__(
        self,
        message: Any,
        offset: int,
        nbytes: int,
        arrived_ps: int,
        tail_ps: int,
        writes: bool,
        begun: Callable[[int, int, int], None],
        rows: Any = None,
        begin: int = 0,
    ) -> None: ...

class AccessService(Actor):
    def submit(self, access: Access) -> None: ...

class AccessQueue(AccessService):
    def __init__(self, engine: Calendar, memory: Any) -> None: ...
    def hold(self) -> None: ...
    def resume(self) -> None: ...
