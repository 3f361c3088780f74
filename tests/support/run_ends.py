"""Random programs that end in every way: on an event, a stream, a copy, a collective, an error."""

from collections.abc import Callable
from random import Random
from typing import NamedTuple

import numpy as np

from coordinator.report.record_rows import RecordRows
from coordinator.watch.record_store import RecordStore
from kernbench.explain.records import RunRecords
from kernbench.explain.records.collected import collected_records
from runtime import DPPolicy, tl, torch
from runtime.torch.tensors.tensor import Tensor
from tests.support.topologies import variant_text
from tests.support.world import Simulation, simulate

dist = torch.distributed
_TOPOLOGY = variant_text(
    sip__cube_mesh={"w": 1, "h": 1},
    cube__pe_layout__pe_per_corner=1,
    cube__pe_layout__corners=["NW", "NE"],
)
_TWO_PES = DPPolicy(pe="column_wise", num_cubes=1, num_pes=2)
_COUNT = 256


class ProgramEndError(Exception):
    """Error that a program raises as its last statement."""


class RunEnd(NamedTuple):
    """The ends of the programs of a run: for each rank the names of its last statements."""

    sips: int
    statements: tuple[tuple[str, ...], ...]

    @property
    def raises(self) -> bool:
        """Whether a rank ends with an exception."""
        return any("raise" in each for each in self.statements)


def _double(x: tl.Pointer, y: tl.Pointer) -> None:
    half = _COUNT // 2
    start = tl.program_id(0) * half
    values = tl.load(x + start, half)
    tl.store(y + start, values + values)


class _Operands:
    """The tensors, the streams and the event that the statements of a rank use."""

    def __init__(self) -> None:
        self.x = torch.zeros(_COUNT, dp=_TWO_PES)
        self.y = torch.empty(_COUNT, dp=_TWO_PES)
        self.streams = (torch.ahbm.Stream(), torch.ahbm.Stream())
        self.event = torch.ahbm.Event()
        self.made: list[Tensor] = []

    def launch(self) -> None:
        torch.launch("double", _double, self.x, self.y)

    def launch_in_a_stream(self) -> None:
        with torch.ahbm.stream(self.streams[0]):
            self.launch()

    def record(self) -> None:
        self.event.record()

    def record_in_a_stream(self) -> None:
        self.event.record(self.streams[1])

    def record_and_wait(self) -> None:
        self.event.record()
        self.event.synchronize()

    def poll_the_event(self) -> None:
        while not self.event.query():
            pass

    def wait_between_streams(self) -> None:
        self.streams[1].wait_stream(self.streams[0])
        with torch.ahbm.stream(self.streams[1]):
            self.launch()

    def write(self) -> None:
        self.made.append(torch.from_numpy(np.ones(_COUNT, np.float32), dp=_TWO_PES))

    def delete(self) -> None:
        self.made.clear()

    def refused(self) -> None:
        """A call that is refused, before anything is submitted."""
        try:
            self.event.elapsed_time(self.event)
        except ValueError:
            return
        raise AssertionError("an event without timing has compared times")


_OF_ONE_RANK: dict[str, Callable[[_Operands], object]] = {
    "launch": _Operands.launch,
    "launch in a stream": _Operands.launch_in_a_stream,
    "record": _Operands.record,
    "record in a stream": _Operands.record_in_a_stream,
    "event": _Operands.record_and_wait,
    "poll": _Operands.poll_the_event,
    "wait of an event": lambda of: of.event.synchronize(),
    "order of streams": _Operands.wait_between_streams,
    "stream": lambda of: of.streams[0].synchronize(),
    "synchronize": lambda _: torch.ahbm.synchronize(),
    "write": _Operands.write,
    "read": lambda of: of.y.numpy(),
    "operator": lambda of: of.made.append(of.x + of.x),
    "delete": _Operands.delete,
    "refused": _Operands.refused,
}
_OF_ALL_RANKS: dict[str, Callable[[_Operands], object]] = {
    "barrier": lambda _: dist.barrier(),
    "all-reduce": lambda of: dist.all_reduce(of.x),
    "all-reduce without a wait": lambda of: dist.all_reduce(of.x, async_op=True),
}


def drawn_end(seed: int) -> RunEnd:
    """The end of the run of a seed."""
    draw = Random(seed)
    sips = draw.choice((1, 1, 2, 3))
    common = draw.choices([*_OF_ALL_RANKS, ""], k=draw.randint(0, 2))
    statements = [
        [
            *draw.choices(list(_OF_ONE_RANK), k=draw.randint(0, 3)),
            *(each for each in common[:1] if each),
            *draw.choices(list(_OF_ONE_RANK), k=draw.randint(0, 3)),
            *(each for each in common[1:] if each),
            *draw.choices(list(_OF_ONE_RANK), k=draw.randint(0, 2)),
        ]
        for _ in range(sips)
    ]
    if draw.random() < 0.1:
        statements[draw.randrange(sips)].append("raise")
    return RunEnd(sips, tuple(map(tuple, statements)))


def ended_run(end: RunEnd) -> Simulation:
    """Run the programs to their end. Raises `ProgramEndError` if one of them raises it."""

    def program(rank: int) -> None:
        if any(name in _OF_ALL_RANKS for name in end.statements[rank]):
            dist.init_process_group("ahbm", algorithm="ring")
        operands = _Operands() if end.statements[rank] else None
        for name in end.statements[rank]:
            if name == "raise":
                raise ProgramEndError(f"rank {rank}")
            assert operands is not None, "a program with statements has operands"
            (_OF_ONE_RANK.get(name) or _OF_ALL_RANKS[name])(operands)

    return simulate(program, end.sips, topology=_TOPOLOGY, record=True)


def records_of(world: Simulation) -> RunRecords:
    """The tables of a run inside the process, as the command has them at the end of a run."""
    store = RecordStore()
    for (sip, table), rows in world.rows.items():
        # All texts of a SIP come with its first table.
        texts = () if store.texts(sip) else tuple(world.texts[sip])
        store.add(sip, table, rows, texts, f"SIP {sip}")
    return collected_records(len(world.done.sips), world.time_ps, RecordRows(store))
