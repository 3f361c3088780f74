"""Egresses and forwarding paths of LPs, against routes that are walked hop by hop."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise, product

from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.core.simtime import ps_from_ns
from runtime.model.sip_fabric import SipFabric, crossing_ps
from sip_node.chip.chip import chip_spec
from sip_node.chip.context import ChipSpec
from sip_node.chip.partition import Egress, Partition
from sip_node.pdes.promises import ForwardingPath
from tests.support.topologies import small

SPEC = chip_spec(small(), data=False)


@st.composite
def dealt(draw: st.DrawFn) -> tuple[ChipSpec, list[list[int]]]:
    """A machine of up to 20 SIPs, which are dealt to LPs in any way."""
    columns, rows = draw(st.integers(1, 5)), draw(st.integers(1, 4))
    topology = draw(st.sampled_from(["ring_1d", "torus_2d", "mesh_2d_no_wrap"]))
    is_ring = topology == "ring_1d"
    machine = small(
        system__sips__count=columns * rows,
        system__sips__topology=topology,
        system__sips__w=None if is_ring else columns,
        system__sips__h=None if is_ring else rows,
        system__sips__fabric=draw(st.sampled_from(["direct", "direct", "direct", "switch"])),
    )
    sips = columns * rows
    lps = draw(st.lists(st.integers(0, min(sips, 5) - 1), min_size=sips, max_size=sips))
    used = sorted(set(lps))
    # A partition needs nothing else of a spec, whose routes inside of a SIP take long to compute.
    spec = replace(SPEC, topology=machine, sips=SipFabric(machine))
    return spec, [[sip for sip in range(sips) if lps[sip] == lp] for lp in used]


def hop_ps(spec: ChipSpec) -> int:
    noc = spec.topology.sip.io_chiplet.noc
    return crossing_ps(spec.topology) + ps_from_ns(noc.overhead_ns)


def channels(path: Sequence[int], lp_of: dict[int, int]) -> int:
    return sum(lp_of[a] != lp_of[b] for a, b in pairwise(path))


def walked(
    fabric: SipFabric, lp_of: dict[int, int], sip: int, target: int, hop: int
) -> Egress | None:
    """The egress of the route from `sip` to `target`, SIP by SIP."""
    path = fabric.path(sip, target)
    for index, (last, following) in enumerate(pairwise(path)):
        if lp_of[following] != lp_of[sip]:
            further = channels(path[index + 1 :], lp_of)
            return Egress(lp_of[following], index * hop, further, last)
    return None


def of_machine(spec: ChipSpec, sips_of_lp: list[list[int]]) -> tuple[Partition, SipFabric, range]:
    """The partition, the fabric whose routes are walked, and the SIPs of a machine."""
    return Partition(sips_of_lp, spec), SipFabric(spec.topology), range(spec.sips.sips)


@settings(max_examples=40)
@given(dealt())
def test_egresses_are_those_of_routes_that_are_walked(
    case: tuple[ChipSpec, list[list[int]]],
) -> None:
    spec, sips_of_lp = case
    made, fabric, sips = of_machine(spec, sips_of_lp)
    for sip in sips:
        each = {
            target: walked(fabric, made.lp_of, sip, target, hop_ps(spec))
            for target in sips
            if target != sip
        }
        assert made.egresses(sip) == {t: egress for t, egress in each.items() if egress is not None}


@settings(max_examples=40)
@given(dealt())
def test_forwarding_paths_are_those_of_routes_that_are_walked(
    case: tuple[ChipSpec, list[list[int]]],
) -> None:
    """A route enters LP `lp` at `sip`, coming from another LP, and leaves it to a peer again."""
    spec, sips_of_lp = case
    made, fabric, sips = of_machine(spec, sips_of_lp)
    egresses = {
        (sip, target): walked(fabric, made.lp_of, sip, target, hop_ps(spec))
        for sip, target in product(sips, sips)
    }
    for lp in range(len(sips_of_lp)):
        least: dict[tuple[int, int], dict[int, int]] = {}
        depths: dict[int, int] = {}
        for source, target in product(sips, sips):
            path = fabric.path(source, target)
            for index, sip in enumerate(path):
                egress = egresses[sip, target]
                if made.lp_of[sip] != lp or egress is None:
                    continue
                depth = depths.get(egress.peer, 0)
                depths[egress.peer] = max(depth, egress.remaining_hops + 1)
                before = made.lp_of[path[max(index - 1, 0)]]
                if before == lp:
                    continue
                for n in range(egress.remaining_hops + 1):
                    delays = least.setdefault((egress.peer, n), {})
                    delays[before] = min(egress.delay_ps, delays.get(before, egress.delay_ps))
        assert made.forwarding_paths(lp) == {
            peer: tuple(
                tuple(ForwardingPath(*each) for each in sorted(least.get((peer, n), {}).items()))
                for n in range(depth)
            )
            for peer, depth in depths.items()
        }
