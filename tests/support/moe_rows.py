"""Rows of the study of a mixture of experts that were not simulated: every time is a formula."""

from kernbench.studies.moe_all_to_all.rows import MoeResults, MoeRow


def row(ranks: int, exponent: float | None, loads: tuple[int, ...], wrong: int = 0) -> MoeRow:
    """A bound of 100 ns for each copy of the largest load, and times 10 % above the bounds."""
    bound_ps = 100_000.0 * max(loads)
    return MoeRow(
        ranks=ranks,
        exponent=exponent,
        tokens=sum(loads) // ranks,
        hidden=64,
        experts=8,
        top_k=1,
        loads=loads,
        port="SIP 1 to SIP 0",
        port_bytes=128 * max(loads),
        dispatch_ps=round(1.1 * bound_ps),
        dispatch_bound_ps=bound_ps,
        time_ps=round(2.2 * bound_ps),
        bound_ps=2 * bound_ps,
        start_skew_ps=0,
        wrong=wrong,
    )


def results() -> MoeResults:
    """Two numbers of ranks with two exponents each."""
    return MoeResults(
        version=1,
        topology="topology.yaml",
        topology_hash="0" * 64,
        seed=1,
        rows=(
            row(2, 0, (4, 4)),
            row(2, 1, (6, 2)),
            row(4, 0, (4, 4, 4, 4)),
            row(4, 1, (8, 4, 2, 2)),
        ),
    )
