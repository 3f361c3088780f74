"""A whole run inside the test's own process: one LP with every SIP, no coordinator, no sockets, no protocol."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from runtime.config_file import default_file
from runtime.errors import IpcqDeadlock
from runtime.trace import OpRecord
from runtime.wire.messages import Done, Job, Peers
from sip_node.failure import ProgramRaised
from sip_node.lp import Figures
from sip_node.node import Node
from sip_node.user_program import Programs


@dataclass
class World:
    """What a run left behind."""

    done: Done
    node: Node
    records: dict[int, list[OpRecord]]
    returned: dict[int, Any] = field(default_factory=dict)

    @property
    def digests(self) -> tuple[str, ...]:
        return tuple(report.digest for report in self.done.sips)

    @property
    def time_ps(self) -> int:
        return max(report.time_ps for report in self.done.sips)

    def of(self, engine: str, name: str = "") -> list[tuple[int, OpRecord]]:
        """(sip, record) of an engine, whose names start with `name`."""
        return [
            (sip, record)
            for sip, records in self.records.items()
            for record in records
            if record.engine == engine and record.name.startswith(name)
        ]


class _Recorder:
    def __init__(self) -> None:
        self.records: dict[int, list[OpRecord]] = {}

    def round(self, time_ps: int, figures: Figures) -> None:
        pass

    def trace(self, sip: int, records: list[OpRecord]) -> None:
        self.records.setdefault(sip, []).extend(records)


def simulate(
    program: Callable[[int], object], sips: int = 2, *, topology: str | None = None, ccl: str | None = None, data: bool = True
) -> World:
    """Run `program(rank)` on every SIP to the end. What it raises is raised here; a global deadlock is an `IpcqDeadlock`."""
    job = Job(
        topology or default_file("topology.yaml").read_text(), ccl or default_file("ccl.yaml").read_text(), sips,
        "", "function", {}, (), data, True, 0, 0.0,
    )  # fmt: skip
    recorder, returned = _Recorder(), {}

    def main(rank: int) -> None:
        returned[rank] = program(rank)

    node = Node(0, Peers(("",), (tuple(range(sips)),), job), Programs(job, main), None, recorder)
    try:
        done = node.run()
    except ProgramRaised as raised:
        raise raised.error from None
    if not all(report.finished for report in done.sips):
        blocked = [each for report in done.sips for each in report.blocked]
        pes = tuple(f"{each.operation} {each.direction} {each.peer}" for each in blocked)
        raise IpcqDeadlock(node.now_ps, pes, tuple(f"rank {r.sip}: {r.waiting_for}" for r in done.sips if not r.finished))
    assert [report.broken_law for report in done.sips] == [""] * sips
    return World(done, node, recorder.records, returned)
