"""Kernels that load and store, in a whole run of the model: the times of their DMA requests."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from runtime import DPPolicy, tl, torch
from runtime.core.trace import Operand, OpRecord
from runtime.model.addresses import AddressMap, PhysAddr
from runtime.model.topology import parse_topology
from tests.oracle.machine import KernelCommand, OracleRequest, OracleTimes
from tests.oracle.routes import Node
from tests.support.random_dma_requests import KernelMove
from tests.support.world import simulate

ROW_WISE = DPPolicy(cube="row_wise", pe="row_wise")


class KernelRun(NamedTuple):
    """Commands of the kernels of a launch on a SIP: all start at `start_ps`, and no message about
    an end is on the links before `first_end_ps`. `times` are those of `commands`.
    """

    start_ps: int
    first_end_ps: int
    commands: list[list[KernelCommand]]
    times: list[list[OracleTimes]]


def run_kernels(text: str, kernels: Sequence[Sequence[KernelMove]]) -> KernelRun:
    """Run a kernel on each PE of a SIP, on the machine of a topology file in YAML."""
    topology = parse_topology(text, "topology.yaml", 1)
    part_bytes = max(move.begin + move.nbytes for moves in kernels for move in moves)

    def program(_rank: int) -> None:
        shape = (len(kernels), part_bytes)
        x = torch.empty(shape, dtype=torch.int8, dp=ROW_WISE)
        torch.launch("moves", kernel, x)

    def kernel(x: tl.Pointer) -> None:
        moves = kernels[tl.program_id(1) * topology.pes_per_cube + tl.program_id(0)]
        starts = [x + move.owner * part_bytes + move.begin for move in moves]
        block, pending = tl.load(starts[0], moves[0].nbytes), list[Any]()
        for start, move in zip(starts[1:], moves[1:], strict=True):
            if move.loads and move.waits:
                tl.load(start, move.nbytes)
            elif move.loads:
                pending.append(tl.load_async(start, move.nbytes))
            elif move.waits:
                tl.store(start, block[: move.nbytes])
            else:
                pending.append(tl.store_async(start, block[: move.nbytes]))
        for each in pending:
            tl.wait(each)

    records = simulate(program, 1, topology=text, data=False).records[0]
    ends = [record for record in records if record.engine == "pe_cpu"]
    [start_ps] = {record.start_ps for record in ends}
    moved = [dict[int, OpRecord]() for _ in kernels]
    for record in records:
        if record.engine == "pe_dma":
            moved[record.cube * topology.pes_per_cube + record.pe][record.nbytes] = record
    commands = _commands(kernels, moved, AddressMap(topology), topology.pes_per_cube)
    times = [
        [OracleTimes(by_size[move.nbytes].start_ps, by_size[move.nbytes].end_ps) for move in moves]
        for moves, by_size in zip(kernels, moved, strict=True)
    ]
    return KernelRun(start_ps, min(record.end_ps for record in ends), commands, times)


def _commands(
    kernels: Sequence[Sequence[KernelMove]],
    moved: Sequence[dict[int, OpRecord]],
    addresses: AddressMap,
    pes_per_cube: int,
) -> list[list[KernelCommand]]:
    """The moves with physical addresses: of each part, those of the first load of its PE."""
    parts = list[PhysAddr]()
    for moves, by_size in zip(kernels, moved, strict=True):
        source = by_size[moves[0].nbytes].inputs[0]
        assert isinstance(source, Operand)
        parts.append(PhysAddr.decode(source.address, addresses))
    commands = list[list[KernelCommand]]()
    for number, moves in enumerate(kernels):
        pe: Node = ("pe", *divmod(number, pes_per_cube))
        commands.append([])
        for move in moves:
            part = parts[move.owner]
            memory: Node = ("hbm", part.cube, part.pe)
            request = OracleRequest(pe, move.loads, memory, part.offset + move.begin, move.nbytes)
            commands[-1].append(KernelCommand(request, move.waits))
    return commands
