"""The functions of `tl` for finding errors of a kernel: printing from a PE, and assertions.

Neither is a command: both take no simulated time and change no other result. They use the elements
that a value has at the call; an operation in flight that writes over the value has not written
before its end.
"""

import numpy as np

from runtime.language.context import running_kernel
from runtime.language.value import Value, check_exists

_SHOWN_ELEMENTS = 16
"""Elements shown of an array; a larger one keeps the first and last three along each axis."""
_EDGE_ELEMENTS = 3
_MOST_CHARACTERS = 4000
"""Characters of a line at most: its message between processes has a bounded size."""


def device_print(prefix: str, *values: object) -> None:
    """Print a line from the PE: its simulated time and coordinates, the kernel, `prefix`, `values`.

    A value in TCM is shown with its type, its shape and its elements, shortened if they are many;
    in a run with --no-data without elements. The lines of all SIPs are printed to the standard
    output when the run ends, also by an error, in the order of (time, SIP, cube, PE), the same for
    any number of processes; the mock runtime prints at once.
    """
    if not isinstance(prefix, str):  # pyright: ignore[reportUnnecessaryIsInstance] - kernels are not type-checked
        given = f"{type(prefix).__name__} {prefix!r}"
        raise TypeError(f"tl.device_print takes a prefix as its first argument, not {given}")
    shown = ", ".join(map(_shown, values))
    text = f"{prefix}: {shown}" if shown else prefix
    cut = f"{text[:_MOST_CHARACTERS]} ..." if len(text) > _MOST_CHARACTERS else text
    running_kernel().device_print(cut)


def device_assert(condition: Value | bool, message: str = "") -> None:  # noqa: FBT001 - a condition
    """Require that all elements of a value of bools are true, or a Python bool.

    Otherwise the run ends with a `KernelError` that has `message`, the line, the PE, the simulated
    time and the first element that is false. A value without elements in a run with --no-data is
    not checked.
    """
    problem = None
    if isinstance(condition, Value):
        problem = _first_false(condition)
    elif not isinstance(condition, bool | np.bool):  # pyright: ignore[reportUnnecessaryIsInstance] - as above
        raise TypeError(
            "tl.device_assert takes a value of bools, as x < y returns, or a Python bool, not "
            f"{type(condition).__name__} {condition!r}"
        )
    elif not condition:
        problem = "the condition is False"
    if problem is not None:
        text = f"{message}: {problem}" if message else problem
        running_kernel().fail_assertion(f"tl.device_assert: {text}")


def _first_false(condition: Value) -> str | None:
    check_exists(condition, "tl.device_assert")
    if condition.dtype.numpy.kind != "b":
        raise TypeError(
            "tl.device_assert takes a value of bools, as x < y returns, not "
            f"{condition.dtype.name} of shape {condition.shape}"
        )
    elements = running_kernel().elements_of(condition)
    if elements is None or elements.all():
        return None
    index = tuple(int(each) for each in np.argwhere(~elements)[0])
    false = elements.size - int(np.count_nonzero(elements))
    return f"element {index} of shape {condition.shape} is False ({false:,} are)"


def _shown(value: object) -> str:
    if not isinstance(value, Value):
        return str(value)
    check_exists(value, "tl.device_print")
    head = f"{value.dtype.name} {value.shape}"
    if value.data is None:
        return head
    # Eight-bit floats print as their nearest decimal numbers, like all others.
    elements = np.array2string(
        value.data,
        separator=", ",
        threshold=_SHOWN_ELEMENTS,
        edgeitems=_EDGE_ELEMENTS,
        max_line_width=1 << 20,
    )
    # One line: lines of several PEs are sorted, and searched for.
    return f"{head} {' '.join(elements.split())}"
