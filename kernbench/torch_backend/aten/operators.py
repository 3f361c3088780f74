"""The table of operators that run on the device, and operators that run on the host.

An operator is a function with PyTorch's signature that launches kernels. One without a kernel
passes through `fallback_chain`, whose last stage is the host, where operators also run that have an
element type with which the engines do not compute. The host waits for the current stream, reads the
operands, computes for `host.fallback_overhead_ns` and for `host.fallback_ns_per_element` times the
elements of operands and results, and writes the results, all in simulated time; the call is
counted. `KERNBENCH_FALLBACK=error` makes such a call an error.
"""

import os
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, ClassVar, NamedTuple, cast

import torch
from torch import Tensor
from torch.utils._pytree import tree_flatten, tree_map

from kernbench.torch_backend.aten import wider_types
from kernbench.torch_backend.aten.attempts import refuse_host
from kernbench.torch_backend.aten.known_results import COPIES, following
from kernbench.torch_backend.runtime.element_types import COMPUTED
from kernbench.torch_backend.runtime.pytorch_api import DEVICE, OpOverload, parameters_of
from kernbench.torch_backend.runtime.storages import storages
from runtime.core.device import Handle
from runtime.core.simtime import PS_PER_NS
from runtime.device.ahbm import elapsed_ps
from runtime.device.rank.rank_state import running_rank
from runtime.device.streams.streams import current_stream

Operator = Callable[..., Any]


class _Entry(NamedTuple):
    function: Operator
    types: frozenset[torch.dtype] | None


OPERATORS: dict[str, _Entry] = {}
"""The functions by the names of operators without their namespace, such as `add.out`."""
COMPLEX: dict[str, Operator] = {}
"""The operators for tensors of which one has complex numbers."""
CALLS: Counter[str] = Counter()
"""The calls of operators on the device."""
DECOMPOSED: Counter[str] = Counter()
"""The calls of operators that PyTorch's decomposition computes by others of the device."""
LAUNCHES: Counter[str] = Counter()
"""The launches of kernels of decomposed operators."""
FALLBACKS: Counter[str] = Counter()
"""The calls of operators on the host."""


PORTABLE = frozenset(
    {
        *("_efficientzerotensor", "_unique", "_unique2", "unique_consecutive", "unique_dim"),
        *("nonzero", "masked_select", "masked_scatter", "masked_scatter_", "bucketize"),
        *("searchsorted", "sort", "argsort", "msort", "kthvalue", "median", "mode", "isin"),
        *("equal", "signbit", "frac", "trunc", "frexp", "nextafter", "copysign", "heaviside"),
        *("gcd", "lcm", "bitwise_left_shift", "bitwise_right_shift", "logical_xor", "bincount"),
        *("gather", "take", "put", "put_", "scatter"),
        *("reflection_pad1d", "reflection_pad2d", "reflection_pad3d", "replication_pad1d"),
        *("replication_pad2d", "replication_pad3d", "repeat_interleave"),
        *("fmax", "fmin", "cummax", "cummin", "aminmax", "nan_to_num", "randperm"),
        *("max_pool2d_with_indices", "max_pool3d_with_indices", "adaptive_max_pool2d"),
        *("adaptive_max_pool3d", "max_unpool2d", "max_unpool3d", "fractional_max_pool2d"),
        *("channel_shuffle", "upsample_nearest1d", "upsample_nearest2d", "upsample_nearest3d"),
    }
)
"""Operators, without their overloads, with the same results on the host of every processor.

PyTorch has code for each vector unit, and its libraries for linear algebra and FFTs have it as
well: sums have another order, and exponentials other last bits. Operators that move or compare
elements, and those that compute with integers alone, have one result. An operator that is not
listed may differ between processors: the closing line of a run names it.
"""
UNPORTABLE: set[str] = set()
"""Operators on the host whose results may differ between processors."""
DRAWN: Counter[str] = Counter()
"""The calls of operators whose random numbers the host draws."""
CONSTANTS: Counter[str] = Counter()
"""The calls of operators whose result is a constant that the host writes to the device."""


class HostTime:
    """The simulated time that passed in operators on the host: reads of operands, the computation,
    writes of results. That of random draws is `drawn_ps`; `copies` are the commands that write
    constants, for which the host does not wait.
    """

    elapsed_ps = 0
    drawn_ps = 0
    copies: ClassVar[list[Handle]] = []
    copied_ps = 0

    @classmethod
    def count_copy(cls) -> None:
        """Count the last command of the current stream, which writes a constant."""
        device = running_rank().device
        cls.fold_copies()
        cls.copies += device.latest(device.stream)

    @classmethod
    def fold_copies(cls) -> None:
        """Add the time of the copies that are complete."""
        cls.copied_ps += sum(
            each.device_done_ps - each.released_ps for each in cls.copies if each.done
        )
        cls.copies = [each for each in cls.copies if not each.done]


def operator(
    *names: str, types: frozenset[torch.dtype] | None = COMPUTED
) -> Callable[[Operator], Operator]:
    """Add a function to the table, for tensors of `types`; None stands for all."""

    def add(function: Operator) -> Operator:
        for name in names:
            OPERATORS[name] = _Entry(function, types)
        return function

    return add


def complex_operator(name: str) -> Callable[[Operator], Operator]:
    """Add the function of complex numbers of an operator that the table has for other types."""

    def add(function: Operator) -> Operator:
        COMPLEX[name] = function
        return function

    return add


def kernels(without_kernel: Operator) -> Iterable[tuple[str, Operator]]:
    """The names of the table with the functions that PyTorch calls. Calls that a function of the
    table declines go to `without_kernel`, with the operator before the arguments.
    """
    for name, entry in OPERATORS.items():
        yield name, _counted(name, entry, without_kernel)


def name_of(operator: OpOverload) -> str:
    """The name of an operator without its namespace, as in the table."""
    return str(operator.name()).removeprefix("aten::")


def on_host(operator: OpOverload, *given: Any, **options: Any) -> Any:
    """Run an operator on the host, the last stage."""
    name = name_of(operator)
    refuse_host(name)
    _check_known(name, (given, options))
    FALLBACKS[name] += 1
    if os.environ.get("KERNBENCH_FALLBACK") == "error":
        raise NotImplementedError(
            f"{operator.name()} has no kernel on {DEVICE!r}, and KERNBENCH_FALLBACK is 'error'; "
            "without it, the operator runs on the host"
        )
    with host_time():
        arguments = tree_map(_read, _tensors_of_numbers(operator, given))
        outs = {each.name for each in parameters_of(operator) if each.is_out}
        keywords = {
            name: tree_map(_unread if name in outs else _read, value)
            for name, value in options.items()
        }
        if "device" in keywords:
            keywords["device"] = torch.device("cpu")
        results = wider_types.computed(operator, arguments, keywords)
        tensors = _distinct((arguments, keywords, results))
        compute_on_host(str(operator.name()), sum(each.numel() for each in tensors))
        _note_portability(name, tensors)
        written = _write_back(operator, (given, options), (arguments, keywords))
        return tree_map(partial(_moved, written), results)


def _check_known(name: str, given: Any) -> None:
    """`NoDataError` for an operand without elements, before any time passes."""
    known = storages().integers
    if known is None:
        return
    for each in _distinct(given):
        if each.device.type == DEVICE and known.elements(each) is None:
            raise known.unknown(each, name, "an operand, which the host reads,")


@contextmanager
def host_time(*, draws: bool = False) -> Generator[None]:
    """A `with` block in which the device waits for the host, which `draws` random numbers or
    computes an operator.
    """
    # The work of the device before it is not the time of the host.
    current_stream().synchronize()
    started_ps = elapsed_ps()
    yield
    current_stream().synchronize()
    passed_ps = elapsed_ps() - started_ps
    if draws:
        HostTime.drawn_ps += passed_ps
    else:
        HostTime.elapsed_ps += passed_ps


def compute_on_host(name: str, elements: int) -> None:
    """Let the simulated time pass in which the host calls an operator and computes with a number of
    elements.
    """
    state = running_rank()
    state.device.compute(name, round(state.topology.host.of_an_operator_ns(elements) * PS_PER_NS))


def _distinct(values: Any) -> list[Tensor]:
    """The different tensors of operands and results: a result may be an operand."""
    return list(
        {id(each): each for each in tree_flatten(values)[0] if isinstance(each, Tensor)}.values()
    )


def _note_portability(name: str, tensors: Sequence[Tensor]) -> None:
    """Integers have one result on every processor."""
    if name.partition(".")[0] not in PORTABLE and any(
        each.is_floating_point() or each.is_complex() for each in tensors
    ):
        UNPORTABLE.add(name)


def report() -> str:
    """One line: the operators, the share of the device in the simulated time, what the host did in
    the rest, and which results on the host may differ between processors.
    """
    HostTime.fold_copies()
    count = sum(CALLS.values()) + sum(FALLBACKS.values())
    total_ps = max(elapsed_ps(), 1)
    parts = [
        ("random draws on the host", HostTime.drawn_ps, DRAWN),
        ("constants of the host", HostTime.copied_ps, CONSTANTS),
        ("host fallbacks", HostTime.elapsed_ps, FALLBACKS),
    ]
    shares = [100 * part_ps / total_ps for _, part_ps, _ in parts]
    line = f"{count:,} operators, {100 - sum(shares):.1f} % of simulated time on the device"
    for share, (title, _, names) in zip(shares, parts, strict=True):
        if names:
            line += f", {share:.1f} % {title} ({_listed(names)})"
    if not FALLBACKS:
        line += ", host fallbacks: none"
    if DECOMPOSED:
        listed = (
            f"{name} {calls} (launches: {LAUNCHES[name]:,})"
            for name, calls in DECOMPOSED.most_common()
        )
        line += f"; decomposed: {', '.join(listed)}"
    if UNPORTABLE:
        line += f"; may differ between processors: {', '.join(sorted(UNPORTABLE))}"
    return line


def _listed(names: Counter[str]) -> str:
    return ", ".join(f"{name} {calls}" for name, calls in names.most_common())


def _counted(name: str, entry: _Entry, without_kernel: Operator) -> Operator:
    packet, _, overload = name.partition(".")
    default = getattr(getattr(torch.ops.aten, packet), overload or "default")

    def call(*given: Any, **options: Any) -> Any:
        function = entry.function
        if entry.types is not None:
            others = {
                each.dtype
                for each in _tensors((*given, *options.values()))
                if each.dtype not in entry.types
            }
            if others:
                is_complex = name in COMPLEX and all(each.is_complex for each in others)
                function = COMPLEX[name] if is_complex else on_host
        if function is on_host:
            return on_host(default, *given, **options)
        result = function(*given, **options)
        if result is NotImplemented:
            return without_kernel(default, *given, **options)
        CALLS[name] += 1
        return result

    known = storages().integers
    return call if known is None or name in COPIES else following(name, default, call, known)


def _tensors(given: Iterable[Any]) -> Iterator[Tensor]:
    for each in given:
        if isinstance(each, Tensor):
            yield each
        elif isinstance(each, list | tuple):
            yield from _tensors(cast(Sequence[Any], each))


def _read(value: Any) -> Any:
    if isinstance(value, Tensor) and value.device.type == DEVICE:
        return value.cpu()
    return torch.device("cpu") if isinstance(value, torch.device) else value


def _unread(value: Any) -> Any:
    """The tensor on the host for the results that PyTorch writes by keyword."""
    return torch.zeros_like(value, device="cpu") if isinstance(value, Tensor) else value


def _tensors_of_numbers(operator: OpOverload, given: Sequence[Any]) -> list[Any]:
    """The arguments, with a tensor for each number that PyTorch passes in place of one."""
    return [
        torch.tensor(value)
        if isinstance(value, bool | int | float | complex) and parameter.is_tensor
        else value
        for value, parameter in zip(given, parameters_of(operator), strict=False)
    ]


def _write_back(
    operator: OpOverload, given: tuple[Any, Any], used: tuple[Any, Any]
) -> dict[int, Tensor]:
    """Write the operands that the operator changes; returns them by the host's copies."""
    written: dict[int, Tensor] = {}
    for position, argument in enumerate(parameters_of(operator)):
        if not argument.is_written:
            continue
        pair = [
            each[1].get(argument.name)
            if argument.name in each[1]
            else (each[0][position] if position < len(each[0]) else None)
            for each in (given, used)
        ]
        for target, result in zip(*(tree_flatten(each)[0] for each in pair), strict=True):
            if isinstance(target, Tensor) and target.device.type == DEVICE:
                if target.shape != result.shape:
                    target.resize_(result.shape)
                target.copy_(result)
                written[id(result)] = target
    return written


def _moved(written: dict[int, Tensor], value: Any) -> Any:
    if not isinstance(value, Tensor) or value.device.type != "cpu":
        return value
    return written[id(value)] if id(value) in written else value.to(DEVICE)
