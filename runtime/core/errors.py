"""The errors of a run. The type says whose fault it is; the text names the place, the values and the rule that was broken.

Exceptions keep their fields as positional arguments: SimPy and pickle rebuild an exception as `type(exc)(*exc.args)`.
"""

from collections.abc import Iterable
from difflib import get_close_matches

from runtime.core.simtime import format_ps

_QUEUES_SHOWN = 32
"""A deadlock of many PEs shows the pointers of so many queues; the report of the run has all of them."""


def nearest(word: str, known: Iterable[str]) -> str:
    """`; did you mean 'x'?` for the known word closest to `word`, else `; known: a, b, c`."""
    choices = sorted(known)
    match = get_close_matches(word, choices, n=1, cutoff=0.5)
    if match:
        return f"; did you mean {match[0]!r}?"
    return f"; known: {', '.join(choices)}" if choices else ""


class KernbenchError(Exception):
    """Base of every error that kernbench raises on purpose."""


class UsageError(KernbenchError):
    """The command line asks for something that does not exist. Fields: what is wrong, in one line."""

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.problem = problem

    def __str__(self) -> str:
        return self.problem


class ConfigError(KernbenchError):
    """A configuration file is wrong. Fields: file, key path such as `system.sips.count`, what is wrong."""

    def __init__(self, source: str, key_path: str, problem: str) -> None:
        super().__init__(source, key_path, problem)
        self.source, self.key_path, self.problem = source, key_path, problem

    def __str__(self) -> str:
        return (
            f"{self.source}: {self.key_path}: {self.problem}"
            if self.key_path
            else f"{self.source}: {self.problem}"
        )


class ProtocolError(KernbenchError):
    """A peer sent what the protocol does not allow. Fields: who sent it, what is wrong with it."""

    def __init__(self, peer: str, problem: str) -> None:
        super().__init__(peer, problem)
        self.peer, self.problem = peer, problem

    def __str__(self) -> str:
        return f"protocol error from {self.peer}: {self.problem}"


class RunAborted(KernbenchError):  # noqa: N818 - not this LP's fault
    """The coordinator stopped the run. Fields: its reason."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason

    def __str__(self) -> str:
        return f"the run was stopped: {self.reason}"


class CausalityError(KernbenchError):
    """Our own synchronisation is wrong. Fields: channel, the time of the message, the bound it broke, the rule."""

    def __init__(self, channel: str, time_ps: int, bound_ps: int, rule: str) -> None:
        super().__init__(channel, time_ps, bound_ps, rule)
        self.channel, self.time_ps, self.bound_ps, self.rule = channel, time_ps, bound_ps, rule

    def __str__(self) -> str:
        return f"{self.channel}: message at {format_ps(self.time_ps)} is before {format_ps(self.bound_ps)}: {self.rule}"


class PhysAddrError(KernbenchError):
    """A physical address cannot be encoded or decoded. Fields: the address or field, the reason."""

    def __init__(self, what: str, problem: str) -> None:
        super().__init__(what, problem)
        self.what, self.problem = what, problem

    def __str__(self) -> str:
        return f"physical address: {self.what}: {self.problem}"


class AllocationError(KernbenchError):
    """A memory cannot hold what is asked. Fields: the memory, bytes asked, the reason."""

    def __init__(self, memory: str, nbytes: int, problem: str) -> None:
        super().__init__(memory, nbytes, problem)
        self.memory, self.nbytes, self.problem = memory, nbytes, problem

    def __str__(self) -> str:
        return f"{self.memory}: cannot allocate {self.nbytes:,} bytes: {self.problem}"


class PageFaultError(KernbenchError):
    """A kernel touched an unmapped address. Fields: kernel, (sip, cube, pe), `file:line`, address, bytes, nearest tensor."""

    def __init__(
        self,
        kernel: str,
        coordinates: tuple[int, int, int],
        line: str,
        address: int,
        nbytes: int,
        tensor: str,
    ) -> None:
        super().__init__(kernel, coordinates, line, address, nbytes, tensor)
        self.kernel, self.coordinates, self.line = kernel, coordinates, line
        self.address, self.nbytes, self.tensor = address, nbytes, tensor

    def __str__(self) -> str:
        return (
            f"page fault in {_kernel_at(self.kernel, self.coordinates, self.line)}: "
            f"{self.nbytes} bytes at virtual address {self.address:#x} are not mapped ({self.tensor})"
        )


class KernelError(KernbenchError):
    """A kernel asks for what hardware or language do not allow. Fields: kernel, (sip, cube, pe), `file:line`, the problem."""

    def __init__(
        self, kernel: str, coordinates: tuple[int, int, int], line: str, problem: str
    ) -> None:
        super().__init__(kernel, coordinates, line, problem)
        self.kernel, self.coordinates, self.line, self.problem = kernel, coordinates, line, problem

    def __str__(self) -> str:
        return f"{_kernel_at(self.kernel, self.coordinates, self.line)}: {self.problem}"


def _kernel_at(kernel: str, coordinates: tuple[int, int, int], line: str) -> str:
    sip, cube, pe = coordinates
    return f"kernel {kernel!r} on sip {sip} cube {cube} pe {pe} at {line}"


class CollectiveMismatchError(KernbenchError, RuntimeError):
    """Two ranks make different collective calls where all must make the same. Fields: a rank and its call, another and its."""

    def __init__(self, rank: int, call: str, peer: int, peer_call: str) -> None:
        super().__init__(rank, call, peer, peer_call)
        self.rank, self.call, self.peer, self.peer_call = rank, call, peer, peer_call

    def __str__(self) -> str:
        ranks = sorted([(self.rank, self.call), (self.peer, self.peer_call)])
        calls = "".join(f"\n  rank {rank} is in {call}" for rank, call in ranks)
        return f"Detected mismatch between collectives on ranks: every rank of a group makes the same calls in one order{calls}"


class IpcqInstallError(KernbenchError):
    """A queue table cannot be installed. Fields: (sip, cube, pe), the problem."""

    def __init__(self, coordinates: tuple[int, int, int], problem: str) -> None:
        super().__init__(coordinates, problem)
        self.coordinates, self.problem = coordinates, problem

    def __str__(self) -> str:
        sip, cube, pe = self.coordinates
        return f"ipcq install on sip {sip} cube {cube} pe {pe}: {self.problem}"


class IpcqDeadlock(KernbenchError):  # noqa: N818 - the name users know from the specification
    """Nothing can happen any more and kernels or ranks still wait.

    Fields: simulated time; a line per PE, per rank, per cycle or chain of waits, and per queue of those that wait.
    """

    def __init__(
        self,
        time_ps: int,
        pes: tuple[str, ...],
        ranks: tuple[str, ...],
        waits: tuple[str, ...] = (),
        queues: tuple[str, ...] = (),
    ) -> None:
        super().__init__(time_ps, pes, ranks, waits, queues)
        self.time_ps, self.pes, self.ranks, self.waits, self.queues = (
            time_ps,
            pes,
            ranks,
            waits,
            queues,
        )

    def __str__(self) -> str:
        counted = [(len(self.pes), "PE"), (len(self.ranks), "rank")]
        waiting = " and ".join(
            f"{count} {noun if count == 1 else noun + 's'}" for count, noun in counted if count
        )
        verb = "waits" if len(self.pes) + len(self.ranks) == 1 else "wait"
        lines = [*self.waits, *self.pes, *self.ranks, *self.queues[:_QUEUES_SHOWN]]
        if len(self.queues) > _QUEUES_SHOWN:
            lines.append(f"{len(self.queues) - _QUEUES_SHOWN} more queues")
        text = "".join(f"\n  {line}" for line in lines)
        return f"IpcqDeadlock at {format_ps(self.time_ps)}: no event is left; {waiting} {verb} for ever{text}"


class InvariantError(KernbenchError):
    """The model broke one of its own laws (conservation, causality). Fields: the place, the law with both values."""

    def __init__(self, component: str, law: str) -> None:
        super().__init__(component, law)
        self.component, self.law = component, law

    def __str__(self) -> str:
        return f"{self.component}: {self.law}"
