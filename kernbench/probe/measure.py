"""Transfers simulated one after the other, each alone on its way, beside their closed form."""

from collections.abc import Sequence
from dataclasses import dataclass

from kernbench.probe.cases import Case, Cases, Operation
from kernbench.probe.closed_form import ClosedForm
from runtime.torch.rank_state import running_rank
from sip_node.local_run import simulate

SWEEP_BYTES = tuple(1 << power for power in range(12, 21))
"""4 KiB to 1 MiB."""


@dataclass(frozen=True)
class Transfer:
    """What is to be measured."""

    case: Case
    operation: Operation
    nbytes: int


@dataclass(frozen=True)
class Row:
    """A transfer, what it should take and what it took."""

    transfer: Transfer
    form: ClosedForm
    measured_ps: int

    @property
    def agrees(self) -> bool:
        """Whether measurement and closed form do."""
        return self.form.holds(self.measured_ps)

    @property
    def gbs(self) -> float:
        """Effective bandwidth: the bytes of the data over the whole time."""
        return self.transfer.nbytes * 1000 / self.measured_ps

    @property
    def utilisation(self) -> float:
        """The share of its bandwidth that the bottleneck delivers over the whole time."""
        return self.gbs / float(self.form.bottleneck.bw_gbs)


def measure(cases: Cases, topology_yaml: str, transfers: Sequence[Transfer]) -> list[Row]:
    """Simulate `transfers` and compute their closed forms, in the same order.

    Writes and reads are separate runs: in between, a memory would have to change its direction.
    """
    measured_ps: dict[Transfer, int] = {}
    for operation in ("write", "read"):
        alike = [transfer for transfer in transfers if transfer.operation == operation]
        if alike:
            measured_ps |= zip(alike, _simulate(cases, topology_yaml, alike), strict=True)
    return [
        Row(each, cases.closed_form(each.case, each.operation, each.nbytes), measured_ps[each])
        for each in transfers
    ]


def _simulate(cases: Cases, topology_yaml: str, transfers: Sequence[Transfer]) -> list[int]:
    """The time in ps of each transfer: for the host until its answer is back, for a DMA from its start to its end."""

    def program(rank: int) -> list[int]:
        if rank != 0:
            return []
        device = running_rank().device
        times_ps: list[int] = []
        for each in transfers:
            done = device.wait(
                device.submit(
                    [cases.request(each.case, each.operation, each.nbytes)], each.case.name
                )
            )
            times_ps.append(done.total_ps if each.case.by_host else done.pe_exec_ps)
        return times_ps

    far = any(each.case.place.sip != 0 for each in transfers)
    world = simulate(
        program, cases.topology.sips, topology=topology_yaml, data=False, remote_dma=far
    )
    times_ps: list[int] = world.returned[0]
    return times_ps
