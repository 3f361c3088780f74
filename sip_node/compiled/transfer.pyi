"""Transfers in C, as Python sees them."""

from typing import Any

from sip_node.compiled.packet_train import PacketTrain

class Transfer:
    kind: Any
    source_sip: int
    source_node: int
    sip: int
    node: int
    address: int
    tag: int
    total: int
    sent_ps: int
    payload: bytes | memoryview
    body: object
    flow: tuple[int, int, int] | None
    rows: Any
    element: int
    call: str
    train: PacketTrain | None
    def __init__(
        self,
        kind: Any,
        source_sip: int,
        source_node: int,
        sip: int,
        node: int,
        address: int = 0,
        tag: int = 0,
        total: int = 0,
        sent_ps: int = 0,
        payload: bytes | memoryview = b"",
        body: object = None,
        flow: tuple[int, int, int] | None = None,
        rows: Any = None,
        element: int = 0,
        call: str = "",
        train: PacketTrain | None = None,
    ) -> None: ...
    def __copy__(self) -> Transfer: ...
