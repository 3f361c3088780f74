"""Runs of launches on SIP 0: a program of the host, its handles, and the records of its kernels."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kernbench.oracle.checks.check import Check
from kernbench.oracle.theory.kernels.kernel_costs import ITEM_BYTES, KernelCosts
from kernbench.oracle.theory.kernels.launches import PeOfSip
from kernbench.oracle.theory.topology_file import TopologyFile
from kernbench.simulation import simulate
from runtime.core import dtypes
from runtime.core.device import Device, Handle
from runtime.core.trace import OpRecord
from runtime.device.launches.launch import launch_on
from runtime.device.rank.rank_state import running_rank
from runtime.language import tl

ELEMENTS = 1024
"""Elements of the operand of the kernel."""
HostProgram = Callable[[Device], list[Handle]]


@dataclass(frozen=True)
class LaunchRun:
    """The handles that a program returned, and the records of its kernels by name."""

    handles: list[Handle]
    kernels: list[OpRecord]

    @property
    def completed_ps(self) -> int:
        """The answer of the last of the handles."""
        return max(handle.completed_ps for handle in self.handles)

    def starts_ps(self, name: str) -> dict[PeOfSip, int]:
        """The start of a kernel on each of its PEs."""
        return {
            (record.cube, record.pe): record.start_ps
            for record in self.kernels
            if record.name == f"kernel {name}"
        }


class LaunchCases:
    """The checks of one topology with an ideal host, whose times the closed forms leave out.

    Ids of checks begin with `prefix`, their texts with `title`.
    """

    def __init__(self, file: TopologyFile, prefix: str, title: str) -> None:
        ideal = {"host.launch_overhead_ns": 0, "host.copy_overhead_ns": None}
        self._file, self._prefix, self._title = file.with_values(ideal), prefix, title
        costs = KernelCosts(self._file, file["packet_bytes"])
        nbytes = ELEMENTS * ITEM_BYTES
        self._fill_ps, self._add_ps = costs.fill_ps(nbytes), costs.add_ps(nbytes)

    def _run(self, program: HostProgram, changes: dict[str, float] | None = None) -> LaunchRun:
        """A fresh run, which ends when all handles of the program are complete."""

        def main(_rank: int) -> list[Handle]:
            device = running_rank().device
            handles = program(device)
            for handle in handles:
                device.wait(handle)
            return handles

        text = self._file.with_values(changes or {}).text
        world = simulate(main, 1, topology=text, data=False)
        return LaunchRun(world.returned[0], [record for _, record in world.of("pe_cpu", "kernel")])

    def _check(self, name: str, text: str, formula: str, expected: int, measured: int) -> Check:
        return Check(
            id=f"{self._prefix}.{name}",
            text=f"{self._title}: {text}",
            formula=formula,
            expected=expected,
            measured=measured,
            unit="ps",
        )


def launch(
    adds: object,
    pes: Sequence[PeOfSip],
    *,
    name: str = "add",
    arguments: int = 1,
    stream: int | None = None,
) -> Handle:
    """Launch a kernel of `adds` additions on PEs; `arguments` makes the launch as long as that."""
    return launch_on(name, _kernel, (adds,) * arguments, [], pes, stream=stream)


def _kernel(adds: int, *_: object) -> None:
    """Fill an operand, then add it to itself: no access to memory, so no packet on any link."""
    value = tl.zeros((ELEMENTS,), dtypes.int32)
    for _each in range(adds):
        value = value + value
