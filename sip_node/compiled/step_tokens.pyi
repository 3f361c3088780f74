"""The tokens of a product in C, as Python sees them."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from sip_node.chip.pe.tile_buffers import FreeList
from sip_node.compiled.tile_token import Token

class TokenSource:
    def __init__(
        self,
        tile_type: type,
        *,
        gemm: Any,
        plan: Any,
        shapes: Mapping[Any, Any],
        sources: tuple[Any, Any],
        output_of: Callable[[Any, Any], Any],
        routes: tuple[tuple[Any, ...], tuple[Any, ...]],
        submitted_ps: int,
        buffers: FreeList,
    ) -> None: ...
    def __iter__(self) -> Iterator[Token]: ...
    def __next__(self) -> Token: ...

class TokenQueue:
    def __init__(self, buffers: FreeList) -> None: ...
    def add(self, tokens: TokenSource) -> None: ...
