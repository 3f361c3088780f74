"""The last point that two accesses have in common, and what would order them."""

from kernbench.explain.check.accesses import TrackedAccess
from kernbench.explain.check.clocks import CommandClocks, done_of, is_done
from kernbench.explain.check.run_calls import CommandRow, SipCalls
from runtime.core.device import COMMUNICATION_STREAM


def common_point(
    first: TrackedAccess, second: TrackedAccess, begun: CommandClocks, calls: SipCalls
) -> str:
    """The last point that is before both accesses in every order; `begun` are the clocks of
    commands.
    """
    own, its = first.accessor, second.accessor
    if own.command == its.command:
        barriers = _common_barriers(first, second)
        kernel = "" if own.program is None else f" of {own.program.kernel}"
        if barriers:
            return f"barrier {barriers} of the launch{kernel}"
        return f"the begin of the launch{kernel}"
    sip = own.sip
    one, other = (begun[sip, each.accessor.command] for each in (first, second))
    number = done_of(one, sip).latest_of_both(done_of(other, sip))
    if not number:
        return "the begin of the program"
    command = calls.commands.get(number)
    if command is None:
        return f"the end of command {number}"
    return f"the end of command {command.command}, {command.why} at {command.line}"


def remedy(first: TrackedAccess, second: TrackedAccess, calls: SipCalls, *, is_strict: bool) -> str:
    """The call that would order two accesses, in words."""
    own, its = first.accessor, second.accessor
    number = own.sip, own.command
    known = second.clock.latest(number, own.key)
    if first.row.call <= known < first.end and not is_done(second.clock, number):
        return (
            f"the {first.row.operation} is in flight when its PE sends, releases, or calls the "
            "barrier, that the other one waits for: tl.wait for it before"
        )
    if own.command == its.command:
        if own.grid or its.grid:
            return (
                "programs of a grid have no order: other elements in each, a second launch, or an "
                "atomic operation that releases behind the one access, and one that acquires in "
                "front of the other"
            )
        return (
            "tl.barrier() between them, or a message that the one sends behind its access and the "
            "other receives before its own"
        )
    one, other = calls.commands.get(own.command), calls.commands.get(its.command)
    if one is None or other is None:
        return "a wait of the host for the first command before the second is submitted"
    if _is_work(one, first):
        order = (
            f"Work.wait() in stream {other.stream} for the work of {one.line}, before the command "
            f"at {other.line}"
        )
    elif _is_work(other, second):
        order = (
            f"wait_stream for stream {one.stream} before the call at {other.line}, or that call in "
            f"stream {one.stream}"
        )
    else:
        order = (
            f"an event of stream {one.stream}, or wait_stream for it, before the command of stream "
            f"{other.stream} at {other.line}"
        )
    if is_strict:
        return f"{order}; only the tensor that both use, or their PEs, order them here"
    return order


def _is_work(command: CommandRow, access: TrackedAccess) -> bool:
    """Whether a command is a collective, or a send or receive of the rank, in a stream of its own.

    Only these launch kernels under another name than that of a kernel.
    """
    is_transfer = access.accessor.program is not None and not command.why.startswith("kernel ")
    return is_transfer or command.stream == COMMUNICATION_STREAM


def _common_barriers(first: TrackedAccess, second: TrackedAccess) -> int:
    """The barriers before both; PEs of a cube call all of them in one order."""
    one, other = first.accessor.program, second.accessor.program
    if one is None or other is None or one.cube == other.cube:
        return min(sum(first.barriers), sum(second.barriers))
    return min(first.barriers.launch, second.barriers.launch)
