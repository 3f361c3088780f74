"""Launches of kernels on the PEs that hold their tensors."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib.metadata import entry_points
from inspect import signature
from typing import cast

import numpy as np

from runtime.core.device import Handle
from runtime.core.program_grid import ALONE, ProgramGrid, checked_grid
from runtime.core.requests import KernelLaunchMsg, PerPe, Request
from runtime.device.memory.stored_tensor import StoredTensor
from runtime.device.rank.queue_tables import install, queue_table
from runtime.device.rank.rank_state import running_rank
from runtime.language.caller import program_line
from runtime.language.other_languages import NAMES
from runtime.language.value import Pointer

_TRITON = "triton."
"""The packages of kernels under `@triton.jit`."""
_FRONT_ENDS = "kernbench.kernels"
"""The entry points of packages that launch kernels of other languages, by language."""


def launch(
    name: str,
    kernel: Callable[..., object],
    *arguments: object,
    queues: str | None = None,
    grid: Sequence[int] | Callable[..., Sequence[int]] | None = None,
    **options: object,
) -> Handle:
    """Queue `kernel(*arguments)` on every PE that holds a shard of one of the tensors among
    `arguments`.

    A tensor is passed as a `tl.Pointer` to the start of its virtual range on this SIP, every other
    argument unchanged. The kernel sends and receives through the queue table `queues` of the
    default process group: that of an algorithm of the group, or one of the section `queues` of
    `ccl.yaml`, which is installed at its first use. By default it is the table of the group's first
    algorithm, if there is a group. `name` stands in reports and error messages.

    With `grid`, a tuple of 1 to 3 lengths, the kernel runs once for each point of it: a program,
    which has its ids by `tl.program_id(axis)`. Programs are numbered with axis 0 fastest, and dealt
    round robin to the PEs in the order of (cube, PE); a PE beyond their number is not launched. A
    PE runs its programs one after the other (`pe.cpu.program_ns` each) and frees the scratch
    between them. Programs are in no order, so they neither exchange messages nor store to the same
    elements.

    A function under `@triton.jit` takes the keywords of Triton's launch besides, and its grid may
    be a function of its arguments.

    The call returns at once: the launch is a command of the current stream (`torch.ahbm.stream`).
    It begins when the commands before it in the stream are complete, and those of other streams
    that use one of its tensors. The handle has the times of the launch once it is complete.
    `TypeError` if the kernel does not accept the arguments, `ValueError` without a tensor among
    them, if the group has no such queues, or for a grid without programs.
    """
    if type(kernel).__module__.startswith(_TRITON):
        return _front_end("triton")(name, kernel, arguments, grid, options)
    _check_launch(name, kernel, arguments)
    if options:
        raise TypeError(_unknown_option(name, next(iter(options)), kernel))
    programs = _programs(name, grid, queues)
    table = _installed(name, queues)
    tensors = [argument for argument in arguments if isinstance(argument, StoredTensor)]
    # Sorted, so that requests do not depend on the order of arguments.
    pes = sorted(
        {(shard.spec.cube, shard.spec.pe) for tensor in tensors for shard in tensor.shards}
    )
    passed = tuple(
        Pointer(each.address, each.dtype) if isinstance(each, StoredTensor) else each
        for each in arguments
    )
    if programs is not None:
        pes = pes[: programs.count]
    return launch_on(name, kernel, passed, tensors, pes, queue_table=table, grid=programs)


@cache
def _front_end(language: str) -> Callable[..., Handle]:
    """The launch of a package for kernels of another language, loaded with its first kernel."""
    points = entry_points(group=_FRONT_ENDS, name=language)
    if not points:
        raise TypeError(
            f"kernels of {language} need the entry point {language!r} in {_FRONT_ENDS!r}, which "
            "this installation of kernbench lacks: install it again (make setup, or pip install)"
        )
    return cast(Callable[..., Handle], next(iter(points)).load())


def _unknown_option(name: str, option: str, kernel: Callable[..., object]) -> str:
    """The error of an unknown keyword of a launch, with advice."""
    parameters = getattr(getattr(kernel, "__code__", None), "co_varnames", ())
    advice = (
        "arguments of a kernel are passed by position, in the order of its parameters"
        if option in parameters
        else NAMES[option]
        if option in ("num_warps", "num_stages")
        else "the keywords are queues and grid"
    )
    return f"launch of {name!r}: unexpected keyword {option!r}; {advice}"


def _programs(name: str, grid: object, queues: str | None) -> ProgramGrid | None:
    if grid is None:
        return None
    try:
        programs = checked_grid(grid)
    except (TypeError, ValueError) as error:
        raise type(error)(f"launch of {name!r} with {error}") from None
    if queues is not None:
        raise ValueError(f"launch of {name!r} with grid {programs.lengths} and queues: {ALONE}")
    return programs


def _installed(name: str, queues: str | None) -> str | None:
    """The name of the queue table of a launch, which is installed or about to be."""
    if queues is None:
        return None
    try:
        table = queue_table(queues)
    except (TypeError, ValueError) as error:
        raise type(error)(f"launch of {name!r} with {error}") from None
    install(table)
    return table.name


def shard_pointers(tensor: StoredTensor) -> PerPe:
    """The kernel argument with which every PE gets the virtual address of its own shard.

    `ValueError` if a PE holds several shards, or if they differ in size.
    """
    _check_shards(tensor)
    return PerPe(
        {
            (shard.spec.cube, shard.spec.pe): Pointer(
                tensor.address + shard.spec.offset_bytes, tensor.dtype
            )
            for shard in tensor.shards
        }
    )


def _check_shards(tensor: StoredTensor) -> None:
    """Kernels of send and recv take one pointer, and one size for all PEs."""
    sizes = {shard.spec.nbytes for shard in tensor.shards}
    pes = {(shard.spec.cube, shard.spec.pe) for shard in tensor.shards}
    if len(pes) < len(tensor.shards):
        problem = f"{len(tensor.shards)} tiles on {len(pes)} PEs"
    elif len(sizes) > 1:
        problem = f"shards of {min(sizes):,} to {max(sizes):,} bytes"
    else:
        return
    raise ValueError(
        f"{tensor.name} of shape {tensor.shape} has {problem}: send and recv take one shard of "
        "one size from each PE; place the tensor with a DPPolicy, or deal tiles that divide it, "
        "not more than PEs"
    )


def launch_on(  # noqa: PLR0913 - the rest is by keyword, and has defaults
    name: str,
    kernel: Callable[..., object],
    arguments: tuple[object, ...],
    tensors: Sequence[StoredTensor],
    pes: Sequence[tuple[int, int]],
    *,
    queue_table: str | None = None,
    local: bool = False,
    call: str = "",
    stream: int | None = None,
    grid: ProgramGrid | None = None,
) -> Handle:
    """Queue a kernel on given PEs, after the mapping of `tensors` there, in a stream of the device,
    by default the current one.

    It sends and receives through `queue_table`, by default that of the default process group, if
    there is one; in this stream, the installation of the queues comes first. A `local` kernel
    starts at the same time, but neither sends nor receives: other SIPs need not wait for what it
    might send; so does one with a `grid`. A kernel of a collective has a `call`.
    """
    state = running_rank()
    state.pes.require(pes, f"launch of {name!r}")
    device, group = state.device, state.process_group
    if queue_table is None:
        queue_table = "" if group is None else group.base.name
    if stream is None:
        stream = device.stream
    if queue_table in state.installs:
        device.order_after(stream, (state.installs[queue_table],))
    names = frozenset(tensor.name for tensor in tensors)
    mapping: list[Request] = [request for tensor in tensors for request in tensor.map_requests(pes)]
    # Page tables must be complete when the kernel starts: the mapping is the command before it.
    if mapping:
        why = f"mapping the tensors of kernel {name!r}"
        device.submit(mapping, why, tensors=names, stream=stream)
    request = KernelLaunchMsg(
        name=name,
        kernel=state.announced(kernel),
        arguments=arguments,
        pes=tuple(pes),
        queues="" if local or grid is not None else queue_table,
        call=call,
        line=program_line(),
        grid=grid,
    )
    handle = device.submit([request], f"kernel {name!r}", tensors=names, stream=stream)
    state.launches += 1
    state.hold(handle, tensors)
    return handle


def _check_launch(name: object, kernel: object, arguments: Sequence[object]) -> None:
    """Refuse on the host what would otherwise fail on every PE, or silently compute on a copy."""
    if not isinstance(name, str):
        form = "torch.launch(name, kernel, *arguments)"
        raise TypeError(f"{form}: argument 'name' must be str, not {type(name).__name__}")
    if not callable(kernel):
        problem = f"argument 'kernel' must be a function, not {type(kernel).__name__}"
        raise TypeError(f"launch of {name!r}: {problem}")
    for index, argument in enumerate(arguments):
        if _holds_tensor(argument):
            problem = f"argument {index} is a {type(argument).__name__} with a tensor in it"
            raise TypeError(f"launch of {name!r}: {problem}; pass tensors one by one")
    if not any(isinstance(argument, StoredTensor) for argument in arguments):
        problem = "a kernel runs where its tensors are, so one argument must be a tensor"
        is_array = any(isinstance(argument, np.ndarray) for argument in arguments)
        advice = "; make one with torch.from_numpy(array)" if is_array else ""
        raise ValueError(f"launch of {name!r}: {problem}{advice}")
    _check_signature(name, kernel, arguments)


def _holds_tensor(argument: object) -> bool:
    match argument:
        case list() | tuple():
            return any(
                isinstance(each, StoredTensor) for each in cast("Sequence[object]", argument)
            )
        case Mapping():
            values = cast("Mapping[object, object]", argument).values()
            return any(isinstance(each, StoredTensor) for each in values)
        case _:
            return False


def _check_signature(name: str, kernel: Callable[..., object], arguments: Sequence[object]) -> None:
    try:
        parameters = signature(kernel)
    except (TypeError, ValueError):
        # Functions of extension modules may have none; the call on the PE then decides.
        return
    try:
        parameters.bind(*arguments)
    except TypeError as error:
        called = f"{getattr(kernel, '__name__', kernel)}({', '.join(parameters.parameters)})"
        count = f"{len(arguments)} argument{'' if len(arguments) == 1 else 's'}"
        raise TypeError(f"launch of {name!r} with {count}: {called}: {error}") from None
