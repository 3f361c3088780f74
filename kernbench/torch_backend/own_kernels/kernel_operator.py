"""`kernbench.kernel`: a kernel of the user as an operator of PyTorch.

The operator is that of `torch.library.custom_op`, whose methods add what else PyTorch may use:
gradients (`register_autograd`), shapes (`register_fake`), code for other devices
(`register_kernel`).
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import torch
from torch import Tensor

from kernbench.torch_backend.aten.operators import CALLS
from kernbench.torch_backend.own_kernels.kernel_gradient import Reference, ReferenceGradient, listed
from kernbench.torch_backend.own_kernels.kernel_launch import KernelPlan, launch_kernel
from kernbench.torch_backend.own_kernels.kernel_signature import (
    KernelRoles,
    derived,
    kernel_signature,
)
from kernbench.torch_backend.runtime.pytorch_api import (
    DEVICE,
    CustomOpDef,
    custom_operator,
    register_gradient,
    register_shapes,
)

_MOST_SHAPES = 1024
"""Calls with different shapes whose results an operator remembers."""


def kernel(
    name: str,
    /,
    *,
    outputs: str | Sequence[str] = (),
    mutates_args: str | Sequence[str] = (),
    grid: Callable[..., Sequence[int]] | None = None,
    sizes: Mapping[str, Callable[..., object]] | None = None,
    placement: str | None = None,
    strided: str | Sequence[str] = (),
    reference: Reference | None = None,
) -> Callable[[Callable[..., object]], CustomOpDef]:
    """A decorator that makes a kernel the operator `name`, such as `"mine::rms_norm"`, of PyTorch.

    The parameters of the kernel are annotated: `tl.Pointer` is a tensor, `tl.Pointer | None` one
    that may be None, `int`, `float`, `bool` and `str` are passed through. Those named in `outputs`
    are results, which the operator allocates and returns; those of `sizes` are computed by their
    functions; all others are the parameters of the operator, in their order and with their
    defaults. The functions of `sizes` and `grid` read the arguments that their parameters name:
    `sizes={"columns": lambda x: x.shape[-1]}`.

    The kernel runs once for each point of `grid` (as in `torch.launch`), each program on the PE
    that holds its part of the tensor `placement`: of n programs, number p has the part from p / n
    of its bytes on. Without a grid, each PE that holds a part of it runs one program. `placement`
    is by default the first result, or the first tensor of `mutates_args`, which the kernel changes.
    A tensor with gaps or another order of axes is copied before, unless it is named in `strided`;
    results are contiguous.

    `reference` computes the same with operators of PyTorch. It is the operator on other devices,
    has the shapes and types of the results, and PyTorch derives the gradient from it, unless
    `register_autograd` has another one. Without it, results have the shape and type of the first
    tensor, unless `register_fake` has others.

    `TypeError` and `ValueError` for a kernel that cannot be an operator, with its name.
    """
    roles = KernelRoles(
        outputs=_names(outputs),
        sizes=tuple(sizes or ()),
        written=_names(mutates_args),
        strided=_names(strided),
    )

    def made(function: Callable[..., object]) -> CustomOpDef:
        try:
            plan = _plan(name, function, roles, grid, sizes or {}, placement)
        except (TypeError, ValueError) as error:
            raise type(error)(f"kernel {name!r}: {error}") from None
        return OwnKernel(plan, reference).operator

    return made


def _names(given: str | Sequence[str]) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)


def _plan(
    name: str,
    function: Callable[..., object],
    roles: KernelRoles,
    grid: Callable[..., Sequence[int]] | None,
    sizes: Mapping[str, Callable[..., object]],
    placement: str | None,
) -> KernelPlan:
    if name.count("::") != 1:
        raise ValueError("the name of an operator is namespace::name")
    signature = kernel_signature(function, roles)
    parameters = [each.name for each in signature.parameters]
    placed = placement or (*roles.outputs, *roles.written)[0]
    if placed not in (*signature.tensors, *roles.outputs):
        raise ValueError(f"placement= names {placed!r}, which is no tensor of the kernel")
    return KernelPlan(
        name=name,
        kernel=function,
        signature=signature,
        grid=None if grid is None else derived("the grid", grid, parameters),
        sizes={key: derived(f"size {key!r}", each, parameters) for key, each in sizes.items()},
        placement=placed,
    )


class OwnKernel:
    """The functions of the `operator` that is a kernel of the user."""

    def __init__(self, plan: KernelPlan, reference: Reference | None) -> None:
        self._plan, self._reference = plan, reference
        self._shapes: dict[tuple[object, ...], list[Tensor]] = {}
        roles = plan.signature.roles
        self.operator: CustomOpDef = custom_operator(
            plan.name, self.computed, roles.written, plan.signature.schema()
        )
        if roles.outputs:
            register_shapes(self.operator, self.shaped)
        if reference is not None and roles.outputs and not roles.written:
            gradient = ReferenceGradient(reference)
            register_gradient(self.operator, gradient.computed, gradient.kept)

    def computed(self, *given: Any) -> Any:
        """The results for the arguments of a call."""
        plan = self._plan
        arguments = plan.signature.bound(given)
        devices = {
            name: tensor.device
            for name in plan.signature.tensors
            if (tensor := cast(Tensor | None, arguments[name])) is not None
        }
        kinds = {each.type for each in devices.values()}
        if kinds == {DEVICE}:
            return self._launched(arguments, next(iter(devices.values())))
        if DEVICE in kinds:
            name = next(name for name, each in devices.items() if each.type != DEVICE)
            raise ValueError(
                f"{plan.name}: {name} is on {str(devices[name])!r}, and the kernel runs on "
                f"{DEVICE!r}; pass {name}.to({DEVICE!r})"
            )
        if self._reference is None:
            raise NotImplementedError(
                f"{plan.name} is a kernel of {DEVICE!r}, and its tensors are on "
                f"{', '.join(map(repr, sorted(kinds)))}; for other devices, give it a reference= "
                "in operators of PyTorch"
            )
        results = listed(self._reference(*given))
        return _returned([each.contiguous() for each in results])

    def shaped(self, *given: Any) -> Any:
        """Empty results: those of the reference, or of the shape and type of the first tensor."""
        signature = self._plan.signature
        arguments = signature.bound(given)
        first = next(
            each for name in signature.tensors if isinstance(each := arguments[name], Tensor)
        )
        results = [first] * len(signature.roles.outputs)
        if self._reference is not None:
            results = listed(self._reference(*arguments.values()))
        return _returned(_empty(results, first.device))

    def _launched(self, arguments: Mapping[str, object], device: torch.device) -> Any:
        shapes = self._known_shapes(arguments) if self._plan.signature.roles.outputs else []
        results = _empty(shapes, device)
        launch_kernel(self._plan, arguments, results)
        CALLS[self._plan.name] += 1
        return _returned(
            [_as_shaped(result, shape) for result, shape in zip(results, shapes, strict=True)]
        )

    def _known_shapes(self, arguments: Mapping[str, object]) -> list[Tensor]:
        """The results on the device `meta`, as the function of shapes makes them."""
        values = list(arguments.values())
        key = tuple(
            (each.shape, each.stride(), each.dtype) if isinstance(each, Tensor) else each
            for each in values
        )
        if key not in self._shapes:
            if len(self._shapes) == _MOST_SHAPES:
                self._shapes.clear()
            self._shapes[key] = listed(self.operator(*map(_without_elements, values)))
        return self._shapes[key]


def _without_elements(value: object) -> object:
    if not isinstance(value, Tensor):
        return value
    return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device="meta")


def _empty(shapes: Sequence[Tensor], device: torch.device) -> list[Tensor]:
    """Contiguous tensors with the shapes and types of others."""
    return [torch.empty(each.shape, dtype=each.dtype, device=device) for each in shapes]


def _as_shaped(result: Tensor, shape: Tensor) -> Tensor:
    """The result with the strides that PyTorch expects."""
    if shape.is_contiguous():
        return result
    strided = torch.empty_strided(
        shape.shape, shape.stride(), dtype=result.dtype, device=result.device
    )
    return strided.copy_(result)


def _returned(results: Sequence[Tensor]) -> Tensor | tuple[Tensor, ...] | None:
    if not results:
        return None
    return results[0] if len(results) == 1 else tuple(results)
