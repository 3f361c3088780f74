"""Rows of the study of all-reduces that were not simulated: times follow from the closed forms."""

from kernbench.studies.milestone_1h_ccl.networks import RingLayout, SipNetwork
from kernbench.studies.milestone_1h_ccl.rows import CclResults, CclRow
from kernbench.studies.milestone_1h_ccl.theory import RingTimeParts

RING = SipNetwork("ring_1d", 4, 1)
TORUS = SipNetwork("torus_2d", 2, 2)
LAYOUTS = (
    RingLayout(
        tuple((a, b) for a in range(4) for b in ((a + 1) % 4, (a - 1) % 4)),
        (0, 1, 2, 3),
    ),
    RingLayout(
        ((0, 1), (0, 2), (1, 0), (1, 3), (2, 0), (2, 3), (3, 1), (3, 2)),
        (0, 1, 3, 2),
    ),
)


def row(
    part: str,
    network: SipNetwork,
    algorithm: str,
    kind: str,
    nbytes: int,
    *,
    extra_ps: int = 60_000,
    wrong: int = 0,
    skew_ps: int = 0,
) -> CclRow:
    """An all-reduce that takes `extra_ps` more than 200 ns a step and its bytes at 128 GB/s."""
    ranks = network.sips
    alpha_ps, moving_ps = (
        2.0 * (ranks - 1) * 200_000,
        2.0 * (ranks - 1) / ranks * nbytes * 1000 / 128,
    )
    by_kernel = (algorithm, kind) == ("ring", "tcm")
    parts = RingTimeParts(
        alpha_ps=alpha_ps,
        moving_ps=moving_ps,
        add_ps=20_000.0,
        credit_ps=0.0,
        memory_ps=30_000.0,
    )
    return CclRow(
        part=part,
        network=network,
        algorithm=algorithm,
        buffer_kind=kind,
        slots=4,
        slot_bytes=4096,
        nbytes=nbytes,
        time_ps=round(alpha_ps + moving_ps) + extra_ps,
        skew_ps=skew_ps,
        wrong=wrong,
        slot_in_ps=250_000,
        slot_out_ps=18_000,
        link_gbs=128.0,
        least_ps=alpha_ps + moving_ps,
        alpha_beta_ps=alpha_ps + moving_ps,
        parts=parts if by_kernel else None,
    )


def results() -> CclResults:
    """Two networks, three kinds of queue, one point of the reference."""
    by_size = [
        row("size", network, algorithm, "tcm", nbytes)
        for network in (RING, TORUS)
        for algorithm in ("ring", "intercube")
        for nbytes in (256, 1024)
    ]
    by_kind = [
        row("kind", RING, "ring", kind, 1024, extra_ps=1000 * more)
        for more, kind in enumerate(("tcm", "hbm", "sram"))
    ]
    reference = row("reference", SipNetwork("ring_1d", 8, 1), "ring", "tcm", 1 << 20)
    return CclResults(
        version=2,
        topology="topology.yaml",
        topology_hash="0" * 64,
        networks=(RING, TORUS),
        layouts=LAYOUTS,
        rows=(*by_size, *by_kind, reference),
    )
