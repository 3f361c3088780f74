"""The parameters of a kernel, divided into those of its operator, its results, and its sizes.

    def rms_norm(x: tl.Pointer, weight: tl.Pointer, y: tl.Pointer, columns: int, eps: float): ...

With the output `y` and the size `columns`, the operator is `rms_norm(x, weight, eps) -> y`: its
parameters have the order of the kernel, a pointer is a tensor there, and a number stays a number.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from inspect import Parameter, Signature, signature
from typing import Any, NamedTuple, Optional, get_type_hints

from torch import Tensor

from kernbench.torch_backend.runtime.pytorch_api import inferred_schema
from runtime.language.value import Pointer

_TENSOR, _OPTIONAL_TENSOR = Tensor, Optional[Tensor]  # noqa: UP045 - the form that PyTorch reads
_TYPES: Mapping[object, object] = {
    Pointer: _TENSOR,
    Pointer | None: _OPTIONAL_TENSOR,
    **{each: each for each in (bool, int, float, str)},
}
"""The types in an operator of the parameters of a kernel, by their annotations."""
_BY_POSITION = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)


class KernelRoles(NamedTuple):
    """Names of parameters of a kernel: `outputs` are results, `sizes` are computed, `written` are
    tensors of a call that it writes, `strided` those that it reads with strides of its own.
    """

    outputs: tuple[str, ...]
    sizes: tuple[str, ...]
    written: tuple[str, ...]
    strided: tuple[str, ...]


class Derived(NamedTuple):
    """A function of some of the arguments of an operator, which it names as its parameters."""

    function: Callable[..., Any]
    reads: tuple[str, ...]

    def of(self, arguments: Mapping[str, object]) -> Any:
        """The value for the arguments of a call."""
        return self.function(*(arguments[each] for each in self.reads))


class KernelSignature(NamedTuple):
    """`order` are all parameters of the kernel, `parameters` those of the operator, `tensors` the
    names of those that are tensors.
    """

    order: tuple[str, ...]
    parameters: tuple[Parameter, ...]
    tensors: tuple[str, ...]
    roles: KernelRoles

    def schema(self) -> str:
        """The schema of the operator, without its name."""
        results = (Tensor,) * len(self.roles.outputs)
        returned: object = {0: None, 1: Tensor}.get(len(results), tuple[results])

        def prototype() -> None: ...

        # PyTorch reads it by `inspect.signature`.
        vars(prototype)["__signature__"] = Signature(self.parameters, return_annotation=returned)
        return inferred_schema(prototype, self.roles.written)

    def bound(self, given: Sequence[object]) -> dict[str, object]:
        """The arguments of a call by name. PyTorch omits those that are equal to their defaults."""
        defaults = [each.default for each in self.parameters[len(given) :]]
        names = [each.name for each in self.parameters]
        return dict(zip(names, [*given, *defaults], strict=True))


def kernel_signature(kernel: Callable[..., object], roles: KernelRoles) -> KernelSignature:
    """The parameters of a kernel.

    `TypeError` for one that cannot be one of an operator, `ValueError` for a name that is no
    parameter, and for a kernel that writes no tensor, or that reads none.
    """
    of_kernel = signature(kernel).parameters
    _check_names(roles, of_kernel)
    try:
        hints = get_type_hints(kernel)
    except NameError as error:
        raise TypeError(f"an annotation of the kernel is a string, and its {error}") from None
    kinds = {name: _kind(each, hints.get(name)) for name, each in of_kernel.items()}
    for name in roles.outputs:
        if kinds[name] is not _TENSOR:
            raise TypeError(f"output {name!r} is no tl.Pointer")
    others = {*roles.outputs, *roles.sizes}
    parameters = tuple(
        Parameter(
            name, Parameter.POSITIONAL_OR_KEYWORD, default=each.default, annotation=kinds[name]
        )
        for name, each in of_kernel.items()
        if name not in others
    )
    tensors = tuple(
        each.name for each in parameters if each.annotation in {_TENSOR, _OPTIONAL_TENSOR}
    )
    if not tensors:
        raise ValueError("the kernel reads no tensor: a parameter that is no output must be one")
    for name in (*roles.written, *roles.strided):
        if name not in tensors:
            raise ValueError(f"{name!r} of mutates_args= or strided= is no tensor of a call")
    return KernelSignature(tuple(of_kernel), parameters, tensors, roles)


def derived(role: str, function: Callable[..., Any], parameters: Sequence[str]) -> Derived:
    """A function of the arguments; `ValueError` if it reads what is no parameter of a call."""
    reads = tuple(signature(function).parameters)
    for each in reads:
        if each not in parameters:
            raise ValueError(
                f"the function of {role} reads {each!r}, which is no argument of a call; these are "
                f"{', '.join(parameters)}"
            )
    return Derived(function, reads)


def _check_names(roles: KernelRoles, parameters: Collection[str]) -> None:
    keywords = ("outputs", "sizes", "mutates_args", "strided")
    for keyword, names in zip(keywords, roles, strict=True):
        for each in names:
            if each not in parameters:
                raise ValueError(
                    f"{keyword}= names {each!r}, which is no parameter of the kernel; these are "
                    f"{', '.join(parameters)}"
                )
    if not (roles.outputs or roles.written):
        raise ValueError(
            "the kernel writes nothing: name the parameters of its results in outputs=, or those "
            "of tensors that it changes in mutates_args="
        )


def _kind(parameter: Parameter, hint: object) -> object:
    """The type of a parameter in the operator."""
    if parameter.kind not in _BY_POSITION:
        raise TypeError(f"parameter {parameter.name!r}: arguments of a kernel are by position")
    if hint not in _TYPES:
        raise TypeError(
            f"parameter {parameter.name!r} has the annotation {hint!r}; the type of a parameter is "
            "tl.Pointer, tl.Pointer | None, bool, int, float or str"
        )
    return _TYPES[hint]
