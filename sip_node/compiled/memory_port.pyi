"""The port of a memory in C, as Python sees it."""

from collections.abc import Iterator
from typing import Any

from sip_node.chip.memory.memory import Memory
from sip_node.compiled.memory_packets import TransferStore

class MemoryPort(TransferStore):
    memory: Memory
    packets: Any
    accept: Any
    def __init__(
        self, chip: Any, node: int, memory: Memory, base: int, kinds: tuple[Any, Any, Any]
    ) -> None: ...
    def serve(self, packets: Any) -> None: ...
    def watch(self, ring_base: int, nbytes: int, pe_node: int) -> None: ...
    def contents(self) -> Iterator[tuple[int, bytes]]: ...
