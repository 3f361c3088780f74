"""Group c: kernels that load from one slice, over one link, from own slices, and by distance."""

from kernbench.oracle.checks.check import Check, Relation
from kernbench.oracle.checks.transfers.competing_loads import TOLERANCE, Measurement, measurements
from kernbench.oracle.theory.topology_file import TopologyFile
from kernbench.simulation import simulate

SIZE, ACCESS = 16384, 4096


def contention(file: TopologyFile) -> list[Check]:
    """The measurements of the bench `congestion` on one SIP, as checks."""
    world = simulate(
        lambda _rank: measurements(file, SIZE, ACCESS), 1, topology=file.text, data=False
    )
    measured: list[Measurement] = world.returned[0]
    return [check for each in measured for check in _checks(each)]


def _checks(measured: Measurement) -> list[Check]:
    least_ps, most_ps = measured.expected.least_ps, measured.expected.most_ps
    name = "-".join(measured.scenario.replace(",", "").lower().split())
    check_id = f"c.kernels.{name}.{measured.pes}"
    text = f"{measured.scenario}: {measured.pes} PE{'' if measured.pes == 1 else 's'}"
    if least_ps == most_ps:
        check = Check(
            id=check_id,
            text=text,
            formula=measured.formula,
            expected=least_ps,
            measured=measured.measured_ps,
            unit="ps",
            tolerance=TOLERANCE + measured.expected.spread_ps / least_ps,
        )
        return [check]
    # The measured time lies between the bounds: each is an upper bound of the other number.
    below = Check(
        id=f"{check_id}.least",
        text=f"{text}, least time",
        formula=measured.formula,
        expected=measured.measured_ps,
        measured=least_ps,
        unit="ps",
        tolerance=TOLERANCE + measured.expected.spread_ps / least_ps,
        relation=Relation.AT_MOST,
    )
    above = Check(
        id=f"{check_id}.most",
        text=f"{text}, no overlap",
        formula="sum of n / B",
        expected=most_ps,
        measured=measured.measured_ps,
        unit="ps",
        tolerance=TOLERANCE + measured.expected.spread_ps / least_ps,
        relation=Relation.AT_MOST,
    )
    return [below, above]
