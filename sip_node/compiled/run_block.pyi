"""Runs of packets as blocks of words in C, as Python sees them."""

from typing import Any

def set_limits(limits: dict[str, Any], kinds: dict[str, Any], block: type[Any]) -> None: ...
