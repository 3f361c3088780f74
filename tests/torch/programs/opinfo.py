"""Every operator of PyTorch's own database of operators, OpInfo, on the device against the CPU: the
results and the gradients of samples of it; prints a line for each operator.

    opinfo.py SAMPLES [SHARE/SHARES | OPERATOR ...]

The first argument is the number of samples of each operator. The others name operators, or one of
equal shares of them: the first one is 0.

A line has the name, the outcome, and of the results and of the gradients the number of operators on
the device, the decomposed operators and those on the host.

Memory that an operator does not write has the numbers of what used it before. So the memory for
its results is filled with NaN, which equals no result.
"""

import itertools
import re
import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.opinfo.core import OpInfo, SampleInput
from torch.utils._pytree import tree_flatten, tree_map

from kernbench.torch_backend.aten.known_results import COPIES
from kernbench.torch_backend.aten.operators import CALLS, DECOMPOSED, FALLBACKS

# PyTorch warns of its own operators here, and of samples that it resizes.
warnings.filterwarnings("ignore")
DEVICE = "ahbm"
TYPES = (torch.float32, torch.int64, torch.bool, torch.complex64)
"""An operator is called with the first of them that it takes on a CPU."""
CHOSEN_FROM = 40
"""The samples of an operator of which the given number is chosen, in equal distances."""
UNWRITTEN = {
    *("empty", "empty_like", "empty_permuted", "empty_strided", "new_empty"),
    "new_empty_strided",
}
"""Operators whose results have any elements."""
HOST_ARGUMENTS = {"tensor_split"}
"""Operators that take their operands besides the first one on a CPU alone."""
_BLOCKS = 4
"""The blocks of memory of each size that are filled before a call."""
_RELATIVE, _OF_LARGEST = 1e-4, 6e-5
"""Sums have another order than those of a CPU: up to 1,000 roundings of 2^-24 each. Differences of
nearly equal numbers have the errors of these.
"""


@dataclass
class Parts:
    """The operators of a part of a call, its results or its gradients, by where they ran."""

    device: Counter[str] = field(default_factory=Counter)
    decomposed: Counter[str] = field(default_factory=Counter)
    host: Counter[str] = field(default_factory=Counter)

    def take(self) -> None:
        """Add the calls since the last time."""
        for own, counted in zip(
            (self.device, self.decomposed, self.host), (CALLS, DECOMPOSED, FALLBACKS), strict=True
        ):
            own.update(counted)
            counted.clear()

    def __str__(self) -> str:
        device = sum(calls for name, calls in self.device.items() if name not in COPIES)
        decomposed, host = " ".join(sorted(self.decomposed)), " ".join(sorted(self.host))
        return f"device {device}; decomposed {decomposed}; host {host}"


def name_of(op: OpInfo) -> str:
    """The name of an operator in PyTorch's tests, with that of its variant."""
    return f"{op.name} ({op.variant_test_name})" if op.variant_test_name else op.name


def samples_of(op: OpInfo, count: int) -> Iterator[SampleInput]:
    """The first, the last and others of the samples of an operator on a CPU."""
    dtype = next((each for each in TYPES if each in op.supported_dtypes("cpu")), None)
    if dtype is None:
        return
    torch.manual_seed(1)
    gradient = op.supports_autograd and dtype.is_floating_point
    generated = op.sample_inputs("cpu", dtype, requires_grad=gradient)
    known = list(itertools.islice(generated, CHOSEN_FROM))
    last = len(known) - 1
    numbers = {round(last * index / max(1, count - 1)) for index in range(count)}
    yield from (known[number] for number in sorted(numbers) if known)


def outcome(op: OpInfo, sample: SampleInput, parts: dict[str, Parts]) -> str:
    """`ok`, or what differs between the device and the CPU; the operators go to `parts`."""
    try:
        expected = _tensors_of(op, sample, "cpu", {})
    except Exception as error:  # noqa: BLE001 - an operator that has no result on a CPU either
        return f"no result on a CPU: {_line(error)}"
    _fill_memory([each for each in expected if each is not None])
    try:
        found = _tensors_of(op, sample, DEVICE, parts)
        if len(found) != len(expected):
            return f"{len(found)} tensors instead of {len(expected)}"
        for own, other in zip(found, expected, strict=True):
            _compare(op, own, other)
    except Exception as error:  # noqa: BLE001 - the outcome of the operator
        return _line(error)
    return "ok"


def _line(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:240]}".replace("|", "/")


def _tensors_of(
    op: OpInfo, sample: SampleInput, device: str, parts: dict[str, Parts]
) -> list[torch.Tensor | None]:
    """The results of a call, and the gradients of its operands."""
    first, *others = tree_map(
        lambda each: _on_device(each, device), (sample.input, sample.args, sample.kwargs)
    )
    if op.name in HOST_ARGUMENTS:
        others = [sample.args, sample.kwargs]
    torch.manual_seed(7)
    Parts().take()
    result = op.op(first, *others[0], **others[1])
    parts.setdefault("forward", Parts()).take()
    tensors = [each for each in tree_flatten(result)[0] if isinstance(each, torch.Tensor)]
    if op.name in UNWRITTEN:
        return [torch.zeros_like(each) for each in tensors]
    operands = [each for each in tree_flatten((first, *others))[0] if _has_gradient(each)]
    processed = sample.output_process_fn_grad(result) if operands else ()
    summed = [each for each in tree_flatten(processed)[0] if _has_gradient(each)]
    if not (operands and summed):
        return tensors
    weights = [_weights(each) for each in summed]
    Parts().take()
    gradients = torch.autograd.grad(summed, operands, weights, allow_unused=True)
    parts.setdefault("gradient", Parts()).take()
    return [*tensors, *gradients]


def _on_device(value: Any, device: str) -> Any:
    if isinstance(value, torch.Tensor):
        copy = value.detach().clone() if device == "cpu" else value.detach().to(device)
        return copy.requires_grad_(value.requires_grad)
    if isinstance(value, torch.device) or value == "cpu":
        return torch.device(device)
    return value


def _has_gradient(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.requires_grad


def _weights(result: torch.Tensor) -> torch.Tensor:
    """Different factors of all elements in the sum of which the gradient is taken."""
    factors = torch.linspace(0.5, 1.5, result.numel(), dtype=torch.float64)
    return factors.view(result.shape).to(result.dtype).to(result.device)


def _fill_memory(expected: list[torch.Tensor]) -> None:
    """Write NaN to memory that the next tensors with the bytes of the expected ones have."""
    held: list[torch.Tensor] = []
    for nbytes in {each.nbytes for each in expected if each.layout == torch.strided}:
        held += [
            torch.full((nbytes,), 255, dtype=torch.uint8, device=DEVICE) for _ in range(_BLOCKS)
        ]


def _compare(op: OpInfo, found: torch.Tensor | None, expected: torch.Tensor | None) -> None:
    if found is None or expected is None:
        assert found is expected, "a gradient on one device alone"
        return
    own, other = found.detach().cpu(), expected.detach()
    assert other.layout in {torch.strided, own.layout}, op.name
    exact = not (other.is_floating_point() or other.is_complex())
    finite = () if exact else other[other.isfinite()].abs().tolist()
    largest = max(finite, default=0.0)
    torch.testing.assert_close(
        own,
        other,
        rtol=0 if exact else _RELATIVE,
        atol=0 if exact else _OF_LARGEST * max(largest, 1.0),
        equal_nan=True,
    )


def main() -> None:
    """The outcome of each operator, and what ran on the host for it."""
    count, *names = int(sys.argv[1]), *sys.argv[2:]
    chosen = [op for op in op_db if not names or name_of(op) in names]
    if len(names) == 1 and re.fullmatch(r"\d+/\d+", names[0]):
        share, shares = map(int, names[0].split("/"))
        chosen = op_db[share::shares]
    for op in chosen:
        parts = dict[str, Parts]()
        outcomes = [outcome(op, sample, parts) for sample in samples_of(op, count)]
        wrong = dict.fromkeys(each for each in outcomes if each != "ok")
        text = "; ".join(wrong) or ("ok" if outcomes else "no sample")
        ran = " | ".join(str(parts.get(each, "")) for each in ("forward", "gradient"))
        sys.stdout.write(f"= {name_of(op)} | {text} | {ran}\n")
        sys.stdout.flush()


main()
