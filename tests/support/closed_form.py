"""The closed form of the model, for tests that write a way out by hand: the one that `kernbench validate` uses."""

from benches.validate.closed_form import (
    CUBE_TO_IO,
    HOST_TO_IO,
    IO_TO_CUBE,
    IO_TO_HOST,
    PE_TO_ROUTER,
    ROUTER_TO_PE,
    ROUTER_TO_SRAM,
    SRAM_TO_ROUTER,
    TO_NEXT_CUBE,
    TO_NEXT_SIP,
    TO_XBAR,
    XBAR_TO_HBM,
    XBAR_TO_PE,
    XBAR_TO_ROUTER,
    ClosedForm,
    Way,
    mesh,
    through_switch,
)

__all__ = [
    "CUBE_TO_IO", "HOST_TO_IO", "IO_TO_CUBE", "IO_TO_HOST", "PE_TO_ROUTER", "ROUTER_TO_PE", "ROUTER_TO_SRAM", "SRAM_TO_ROUTER",
    "TO_NEXT_CUBE", "TO_NEXT_SIP", "TO_XBAR", "XBAR_TO_HBM", "XBAR_TO_PE", "XBAR_TO_ROUTER", "ClosedForm", "Way", "mesh",
    "through_switch",
]  # fmt: skip
