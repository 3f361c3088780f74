"""The number of processes that pays: of a short run, one for several SIPs.

A process takes about half a second of processor time to start, and its messages take time. Measured
with one and two processes on two cores, with default flags: an all-reduce or a block of a
transformer takes 0.15 to 0.2 s for each SIP, and the second process pays from 8 to 16 SIPs on;
products without messages take 0.05 s, and pay from 8 SIPs on.
"""

from kernbench.benches import BENCHES
from runtime.core.compiled.choice import IS_COMPILED
from runtime.core.cores import usable_cores

SHORT_BENCHES = frozenset(BENCHES) - {"qkv-gemm-multi-pe"}
"""Benches of which a SIP takes 0.2 s at most, with their default flags and configuration."""
SIPS_OF_A_PROCESS = 4


def procs_by_cores(sips: int, bench: str | None) -> int:
    """The number of processes for `sips` SIPs by the cores of this machine.

    `bench` is the bench that runs, if its flags and the machine are its defaults.
    """
    procs = min(sips, usable_cores())
    # Interpreted, a SIP takes some times as long.
    if bench in SHORT_BENCHES and IS_COMPILED:
        return min(procs, max(1, sips // SIPS_OF_A_PROCESS))
    return procs
