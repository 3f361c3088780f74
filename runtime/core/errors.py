"""The errors of a run.

The type states whose fault it is: `ConfigError` is the user's file, `ProtocolError` a peer,
`CausalityError` and `InvariantError` kernbench itself. The text names the rank, component or
channel, the values with their units, and the rule that was broken.

Exceptions take positional fields and pass them to `super().__init__`: SimPy and pickle rebuild an
exception as `type(exc)(*exc.args)`, so fields that are not in `args` would be lost.
"""

from collections.abc import Iterable

from runtime.core.program_grid import program_text
from runtime.core.simtime import format_ps

_QUEUES_SHOWN = 32
"""Queues in the text of a deadlock at most; `run.json` has all of them."""
_NAMES_LISTED = 60
"""Names that an error lists at most; of more it has only the parts before their first dot."""


def nearest(name: str, known: Iterable[str]) -> str:
    """`; did you mean 'x'?` for the known name closest to `name`, else `; known: a, b, c`.

    Of many dotted names, only the first parts are listed: `a.*`.
    """
    # Loaded where a name is wrong, since it is large.
    from difflib import get_close_matches

    choices = sorted(known)
    # 0.5 also finds names with a swapped or missing word, such as `reduce_all` for `all_reduce`.
    match = get_close_matches(name, choices, n=1, cutoff=0.5)
    if match:
        return f"; did you mean {match[0]!r}?"
    # Nothing is similar: the complete list helps more than a wild guess.
    if len(choices) > _NAMES_LISTED:
        parts = (choice.partition(".") for choice in choices)
        choices = list(dict.fromkeys(first + (".*" if dot else "") for first, dot, _ in parts))
    return f"; known: {', '.join(choices)}" if choices else ""


def absent_attribute(module: str, name: str, known: Iterable[str]) -> AttributeError:
    """The error for an attribute that a module lacks, with the nearest of the `known` names."""
    # The import system looks for names of this form, and ignores the text.
    suggestion = "" if name.startswith("__") else nearest(name, known)
    return AttributeError(f"kernbench's {module} has no {name}{suggestion}")


class KernbenchError(Exception):
    """Base of every error that kernbench raises on purpose."""


class UsageError(KernbenchError):
    """The command line is wrong. Fields: what is wrong, in one line."""

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.problem = problem

    def __str__(self) -> str:
        return self.problem


class ConfigError(KernbenchError):
    """A configuration file is wrong.

    Fields: the file, the key path such as `system.sips.count`, what is wrong.
    """

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
    """A peer sent what the protocol does not allow. Fields: the sender, what is wrong."""

    def __init__(self, peer: str, problem: str) -> None:
        super().__init__(peer, problem)
        self.peer, self.problem = peer, problem

    def __str__(self) -> str:
        return f"protocol error from {self.peer}: {self.problem}"


class ConnectionLost(KernbenchError):  # noqa: N818 - names what has happened, as `RunAborted`
    """The connection to an LP on another host has ended, which is final.

    Fields: the LP, its endpoint, the reason.
    """

    def __init__(self, peer_lp: int, endpoint: str, reason: str) -> None:
        super().__init__(peer_lp, endpoint, reason)
        self.peer_lp, self.endpoint, self.reason = peer_lp, endpoint, reason

    def __str__(self) -> str:
        return f"the connection to LP {self.peer_lp} at {self.endpoint} is lost: {self.reason}"


class RunAborted(KernbenchError):  # noqa: N818 - not this LP's fault
    """The coordinator stopped the run. Fields: its reason."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason

    def __str__(self) -> str:
        return f"the run was stopped: {self.reason}"


class CausalityError(KernbenchError):
    """The synchronisation of kernbench is wrong.

    Fields: the channel, the time of the message and the bound that it violates in ps, the rule.
    """

    def __init__(self, channel: str, time_ps: int, bound_ps: int, rule: str) -> None:
        super().__init__(channel, time_ps, bound_ps, rule)
        self.channel, self.time_ps, self.bound_ps, self.rule = channel, time_ps, bound_ps, rule

    def __str__(self) -> str:
        times = f"message at {format_ps(self.time_ps)} is before {format_ps(self.bound_ps)}"
        return f"{self.channel}: {times}: {self.rule}"


class PhysAddrError(KernbenchError):
    """A physical address cannot be encoded or decoded. Fields: the address or field, the reason."""

    def __init__(self, what: str, problem: str) -> None:
        super().__init__(what, problem)
        self.what, self.problem = what, problem

    def __str__(self) -> str:
        return f"physical address: {self.what}: {self.problem}"


class AllocationError(KernbenchError):
    """A memory has no room. Fields: the memory, the bytes requested, the reason."""

    def __init__(self, memory: str, nbytes: int, problem: str) -> None:
        super().__init__(memory, nbytes, problem)
        self.memory, self.nbytes, self.problem = memory, nbytes, problem

    def __str__(self) -> str:
        return f"{self.memory}: cannot allocate {self.nbytes:,} bytes: {self.problem}"


class PageFaultError(KernbenchError):
    """A kernel accessed an unmapped address.

    Fields: the kernel, (sip, cube, pe), `file:line`, the address, bytes, the nearest tensor; with a
    grid, the ids of the program.
    """

    def __init__(  # noqa: PLR0917 - the fields of an exception are positional
        self,
        kernel: str,
        coordinates: tuple[int, int, int],
        line: str,
        address: int,
        nbytes: int,
        tensor: str,
        program: tuple[int, ...] | None = None,
    ) -> None:
        super().__init__(kernel, coordinates, line, address, nbytes, tensor, program)
        self.kernel, self.coordinates, self.line = kernel, coordinates, line
        self.address, self.nbytes, self.tensor = address, nbytes, tensor
        self.program = program

    def __str__(self) -> str:
        kernel = _kernel_at(self.kernel, self.coordinates, self.line, self.program)
        return (
            f"page fault in {kernel}: {self.nbytes} bytes at virtual address {self.address:#x} are "
            f"not mapped ({self.tensor})"
        )


class KernelError(KernbenchError):
    """A kernel does what the hardware or the kernel language does not allow.

    Fields: the kernel, (sip, cube, pe), `file:line`, the problem; with a grid, the ids of the
    program.
    """

    def __init__(
        self,
        kernel: str,
        coordinates: tuple[int, int, int],
        line: str,
        problem: str,
        program: tuple[int, ...] | None = None,
    ) -> None:
        super().__init__(kernel, coordinates, line, problem, program)
        self.kernel, self.coordinates, self.line, self.problem = kernel, coordinates, line, problem
        self.program = program

    def __str__(self) -> str:
        kernel = _kernel_at(self.kernel, self.coordinates, self.line, self.program)
        return f"{kernel}: {self.problem}"


class FindingsError(KernbenchError):
    """A check has found races or undefined values. Fields: the kernel, the reports as text."""

    def __init__(self, kernel: str, reports: str) -> None:
        super().__init__(kernel, reports)
        self.kernel, self.reports = kernel, reports

    def __str__(self) -> str:
        return f"launch of {self.kernel!r}:\n{self.reports}"


def _kernel_at(
    kernel: str,
    coordinates: tuple[int, int, int],
    line: str,
    program: tuple[int, ...] | None,
) -> str:
    sip, cube, pe = coordinates
    return f"kernel {kernel!r}{program_text(program)} on sip {sip} cube {cube} pe {pe} at {line}"


class CollectiveMismatchError(KernbenchError, RuntimeError):
    """Two ranks make different collective calls where all ranks must make the same call.

    Fields: a rank, its call, another rank, its call.
    """

    rule = "every rank of a group makes the same calls in one order"
    verbs = "is in", "is in"

    def __init__(self, rank: int, call: str, peer: int, peer_call: str) -> None:
        super().__init__(rank, call, peer, peer_call)
        self.rank, self.call, self.peer, self.peer_call = rank, call, peer, peer_call

    def __str__(self) -> str:
        own, other = self.verbs
        # In the order of ranks, independent of which one was found first.
        ranks = sorted([(self.rank, own, self.call), (self.peer, other, self.peer_call)])
        calls = "".join(f"\n  rank {rank} {verb} {call}" for rank, verb, call in ranks)
        # The beginning is the text of PyTorch, which scripts and people search for.
        return f"Detected mismatch between collectives on ranks: {self.rule}{calls}"


class TransferMismatchError(CollectiveMismatchError):
    """The elements of a message are not those that its receive expects.

    Fields: the sender, its message, the receiver, the message that it expects.
    """

    rule = "a message and its receive have one element type, number of elements and placement"
    verbs = "sends", "receives"


class IpcqInstallError(KernbenchError):
    """A queue table cannot be installed. Fields: (sip, cube, pe), the problem."""

    def __init__(self, coordinates: tuple[int, int, int], problem: str) -> None:
        super().__init__(coordinates, problem)
        self.coordinates, self.problem = coordinates, problem

    def __str__(self) -> str:
        sip, cube, pe = self.coordinates
        return f"ipcq install on sip {sip} cube {cube} pe {pe}: {self.problem}"


class IpcqDeadlock(KernbenchError):  # noqa: N818 - the name is part of the specification
    """No event is left in any LP and kernels or ranks still wait.

    Fields: the simulated time in ps; a line for each blocked PE, for each unfinished rank, for each
    cycle or chain of the wait-for graph, and for each queue of the blocked PEs.
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
        self.time_ps, self.pes, self.ranks = time_ps, pes, ranks
        self.waits, self.queues = waits, queues

    def __str__(self) -> str:
        counted = [(len(self.pes), "PE"), (len(self.ranks), "rank")]
        waiting = " and ".join(
            f"{count} {noun if count == 1 else noun + 's'}" for count, noun in counted if count
        )
        verb = "waits" if len(self.pes) + len(self.ranks) == 1 else "wait"
        # The cause first: cycles and chains, then the details.
        lines = [*self.waits, *self.pes, *self.ranks, *self.queues[:_QUEUES_SHOWN]]
        if len(self.queues) > _QUEUES_SHOWN:
            lines.append(f"{len(self.queues) - _QUEUES_SHOWN} more queues")
        text = "".join(f"\n  {line}" for line in lines)
        summary = f"no event is left; {waiting} {verb} forever"
        return f"IpcqDeadlock at {format_ps(self.time_ps)}: {summary}{text}"


class NetworkDeadlock(KernbenchError):  # noqa: N818 - named as `IpcqDeadlock`
    """No event is left in any LP, and full buffers of the network wait for each other in a cycle.

    Fields: the simulated time in ps; for each buffer of the cycle its name and its packet.
    """

    def __init__(self, time_ps: int, cycle: tuple[tuple[str, str], ...]) -> None:
        super().__init__(time_ps, cycle)
        self.time_ps, self.cycle = time_ps, cycle

    def __str__(self) -> str:
        lines = [f"{buffer}: {packet}, waits for" for buffer, packet in self.cycle]
        text = "".join(f"\n  {line}" for line in [*lines, "the first of these buffers"])
        full = f"{len(self.cycle)} full buffers of the network wait for each other"
        return f"NetworkDeadlock at {format_ps(self.time_ps)}: no event is left; {full}{text}"


class InvariantError(KernbenchError):
    """The model violates one of its own laws, such as the conservation of bytes.

    Fields: the component, the law with both values.
    """

    def __init__(self, component: str, law: str) -> None:
        super().__init__(component, law)
        self.component, self.law = component, law

    def __str__(self) -> str:
        return f"{self.component}: {self.law}"
