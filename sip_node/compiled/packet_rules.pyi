"""Which transfers from other SIPs may enter a chip in C, as Python sees them."""

from typing import Any

class Rules:
    def bind(
        self,
        sips: int,
        credited: tuple[int, int],
        memories: dict[int, tuple[int, int, int]],
        senders: frozenset[int],
        receivers: frozenset[int],
        to_memory: frozenset[int],
    ) -> None: ...
    def fault(self, message: Any) -> str: ...
