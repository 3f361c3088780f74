"""The endpoint of a component with several parts, in C, as Python sees it."""

from collections.abc import Callable, Mapping
from typing import Any

from sip_node.compiled.hops import Endpoint

class PacketSwitch(Endpoint):
    def __init__(self, receivers: Mapping[int, Callable[[Any, int], None]]) -> None: ...
