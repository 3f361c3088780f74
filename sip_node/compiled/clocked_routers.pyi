"""The clocked routers of one SIP in C, as Python sees them."""

from sip_node.compiled.calendar import Actor

class ClockedRouters(Actor): ...
