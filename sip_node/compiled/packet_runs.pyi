"""Packets that wait for a message in C, as Python sees them."""

from collections.abc import Callable
from typing import Any

from sip_node.compiled.link_egress import LinkEnd

class OpenRun:
    number: int
    is_first: bool
    ends: bool
    heads_ps: tuple[int, ...]
    tails_ps: tuple[int, ...]
    seqs: tuple[int, ...]
    begins: tuple[int, ...]
    sizes: tuple[int, ...]
    def __init__(self, number: int, is_first: bool) -> None: ...

class Runs(LinkEnd):
    def bind(
        self,
        open_runs: dict[Any, Any],
        numbers: dict[Any, int],
        begin: Callable[[Any], Any],
        limit: int,
    ) -> None: ...
