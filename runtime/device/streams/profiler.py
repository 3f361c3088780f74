"""A profile of a part of a program: the operations of its device in simulated time.

with torch.ahbm.profile() as prof:
    torch.launch("scale", scale, x)
print(prof.table())
"""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from runtime.core.trace import OpRecord
from runtime.device.rank.rank_state import running_rank

_ROWS = 30
_COMPUTE = "pe_cpu"
"""The engine of the records of kernels that a program launches."""
KERNELS = frozenset({_COMPUTE, "pe_cpu.collective", "pe_cpu.transfer"})
"""The engines of the records of all kernels on PEs: those of collectives and messages as well."""


@dataclass(frozen=True)
class OperationTotal:
    """All operations of one engine with one name: their number, and the sums of times and bytes.

    Operations that run side by side are added, so a sum may exceed the duration of the profile.
    """

    engine: str
    name: str
    count: int
    total_ps: int
    nbytes: int


@dataclass
class Profile:
    """The op log of this rank's SIP between `start_ps` and `end_ps`, in the order of completion.

    `records` is complete after the block.
    """

    start_ps: int
    end_ps: int = 0
    records: Sequence[OpRecord] = field(default_factory=list[OpRecord])

    @property
    def duration_ns(self) -> float:
        """The simulated time of the block, in ns."""
        return (self.end_ps - self.start_ps) / 1000

    @property
    def exposed_communication_ns(self) -> float:
        """The simulated time, in ns, in which kernels of collectives, sends or receives run on this
        SIP, and no other kernel.
        """
        kernels = [each for each in self.records if each.engine in KERNELS]
        others = [each for each in kernels if each.engine == _COMPUTE]
        return (_covered_ps(kernels) - _covered_ps(others)) / 1000

    def totals(self) -> list[OperationTotal]:
        """The operations by engine and name, the longest sum first."""
        groups: dict[tuple[str, str], list[OpRecord]] = {}
        for record in self.records:
            groups.setdefault((record.engine, record.name), []).append(record)
        totals = [
            OperationTotal(
                engine=engine,
                name=name,
                count=len(records),
                total_ps=sum(each.end_ps - each.start_ps for each in records),
                nbytes=sum(each.nbytes for each in records),
            )
            for (engine, name), records in groups.items()
        ]
        return sorted(totals, key=lambda each: (-each.total_ps, each.engine, each.name))

    def table(self, row_limit: int = _ROWS) -> str:
        """`totals` as text, `row_limit` lines of it."""
        header = (
            f"{'engine':20} {'name':32} {'count':>8} {'total ns':>14} {'mean ns':>12} {'B':>14}"
        )
        lines = [
            f"{each.engine:20} {each.name:32} {each.count:8,} {each.total_ps / 1000:14,.3f} "
            f"{each.total_ps / 1000 / each.count:12,.3f} {each.nbytes:14,}"
            for each in self.totals()[:row_limit]
        ]
        took = f"simulated time {self.duration_ns:,.3f} ns, {len(self.records):,} operations"
        return "\n".join((header, *lines, took))


@contextmanager
def profile() -> Generator[Profile]:
    """Yield a `Profile` of the block, which begins and ends with `synchronize`.

    The op log of the run has the same records, and no others; a run without traces has a profile,
    too. An exception in the block ends the profile at once, without `synchronize`.
    """
    device = running_rank().device
    device.synchronize()
    profiled, records = Profile(device.now_ps), device.begin_recording()
    profiled.records = records
    try:
        yield profiled
        device.synchronize()
    finally:
        profiled.end_ps = device.now_ps
        device.end_recording(records)


def _covered_ps(records: Sequence[OpRecord]) -> int:
    """The length of the union of the records' times."""
    covered_ps = until_ps = 0
    for start_ps, end_ps in sorted((each.start_ps, each.end_ps) for each in records):
        covered_ps += max(0, end_ps - max(start_ps, until_ps))
        until_ps = max(until_ps, end_ps)
    return covered_ps
