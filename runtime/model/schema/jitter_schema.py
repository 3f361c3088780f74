"""The section `jitter` of `topology.yaml`: random delays of hosts and of links between SIPs.

Each delay is uniform over the picoseconds from 0 to its bound; `runtime.model.jitter` draws them.
The hosts and the ports to other SIPs have these keys, so `overrides` may set them for one of them.
"""

from typing import Annotated

from msgspec import Meta

from runtime.core.config.section import Section
from runtime.model.schema.draws import Fixed
from runtime.model.schema.meanings import ActsOn
from runtime.model.schema.quantities import Ns

_NOT_DRAWN = Fixed("closed forms give the times without it; `overrides` of random machines draw it")


class JitterConfig(Section, frozen=True, kw_only=True):
    """Random delays of hosts and of the links between SIPs, each uniform from 0 to a bound."""

    seed: Annotated[
        int, Meta(ge=0, le=(1 << 63) - 1), _NOT_DRAWN, ActsOn("seed of all delays of this section")
    ] = 0
    start_skew_ns: Annotated[
        Ns, _NOT_DRAWN, ActsOn("start of the program of a rank, late by at most this")
    ] = 0.0
    command_ns: Annotated[
        Ns, _NOT_DRAWN, ActsOn("a command on its way out of a host, late by at most this")
    ] = 0.0
    crossing_ns: Annotated[
        Ns, _NOT_DRAWN, ActsOn("a packet at a port to another SIP, late by at most this")
    ] = 0.0
