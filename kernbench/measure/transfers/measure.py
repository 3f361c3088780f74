"""Simulates transfers, each alone in the system, and computes their closed forms."""

from collections.abc import Sequence
from dataclasses import dataclass

from kernbench.measure.transfers.cases import Direction, ProbeCase, ProbeCases
from kernbench.oracle.theory.paths.transfers import TransferForm
from kernbench.simulation import simulate
from runtime.device.rank.rank_state import running_rank

SWEEP_BYTES = tuple(1 << power for power in range(12, 21))
"""4 KiB to 1 MiB."""


@dataclass(frozen=True)
class ProbeTransfer:
    """A transfer to be measured."""

    case: ProbeCase
    direction: Direction
    nbytes: int


@dataclass(frozen=True)
class ProbeRow:
    """A transfer with its closed form and its simulated time."""

    transfer: ProbeTransfer
    form: TransferForm
    measured_ps: int

    @property
    def agrees(self) -> bool:
        """Whether the simulated time agrees with the closed form."""
        return self.form.agrees_with(self.measured_ps)

    @property
    def gbs(self) -> float:
        """Effective bandwidth: the bytes of the data over the time of the whole transfer."""
        return self.transfer.nbytes * 1000 / self.measured_ps

    @property
    def utilisation(self) -> float:
        """Effective bandwidth as a share of the bandwidth of the bottleneck."""
        return self.gbs / float(self.form.bottleneck.bw_gbs)


def measure(
    cases: ProbeCases, topology_yaml: str, transfers: Sequence[ProbeTransfer]
) -> list[ProbeRow]:
    """Simulate `transfers` and compute their closed forms, in the same order.

    Writes and reads are separate runs: a memory that changes its direction in between would pay the
    switch penalty.
    """
    measured_ps: dict[ProbeTransfer, int] = {}
    for direction in ("write", "read"):
        alike = [transfer for transfer in transfers if transfer.direction == direction]
        if alike:
            measured_ps |= zip(alike, _simulate(cases, topology_yaml, alike), strict=True)
    return [
        ProbeRow(each, cases.closed_form(each.case, each.direction, each.nbytes), measured_ps[each])
        for each in transfers
    ]


def _simulate(
    cases: ProbeCases, topology_yaml: str, transfers: Sequence[ProbeTransfer]
) -> list[int]:
    """Time in ps of each transfer: of the host until the answer, of a DMA from start to end."""

    def program(rank: int) -> list[int]:
        if rank != 0:
            return []
        device = running_rank().device
        times_ps: list[int] = []
        for each in transfers:
            request = cases.request(each.case, each.direction, each.nbytes)
            completion = device.wait(device.submit([request], each.case.name))
            # A command of the host also contains its own overheads; that of a DMA is its engine
            # time.
            times_ps.append(completion.total_ps if each.case.by_host else completion.pe_exec_ps)
        return times_ps

    # Access to other SIPs is off by default in a run: a SIP then also sends answers,
    # which its promises must allow for.
    far = any(each.case.target.sip != 0 for each in transfers)
    world = simulate(
        program, cases.topology.sips, topology=topology_yaml, data=False, remote_dma=far
    )
    times_ps: list[int] = world.returned[0]
    return times_ps
