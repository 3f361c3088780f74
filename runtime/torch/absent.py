"""Names of PyTorch that kernbench lacks: an `AttributeError` with what to use instead, or the
nearest name that exists.
"""

from collections.abc import Sequence

from runtime.core.dtypes import ALL
from runtime.core.errors import absent_attribute

_TYPES = ", ".join(repr(dtype) for dtype in ALL)

ADVICE = {
    "make the values with numpy and torch.from_numpy(...) or torch.tensor(...)": (
        "asarray bernoulli complex logspace meshgrid multinomial normal randint_like seed tril triu"
    ),
    f"the element types are {_TYPES}": (
        "cdouble cfloat complex64 complex128 int16 short uint16 uint32 uint64"
    ),
    "compute in a kernel started with torch.launch(name, kernel, ...), or in numpy with "
    "tensor.numpy()": (
        "addmm argmax argmin argsort cumprod cumsum dot einsum erf expand expand_as fma gather "
        "gelu index_select isnan layer_norm log_softmax masked_fill mv norm prod reciprocal repeat "
        "roll rsqrt scatter silu sort square std tensordot topk unique var vmap where"
    ),
    "multiply the matrices of a batch one by one with torch.matmul": "baddbmm bmm",
    "x.t() transposes a matrix; other orders of axes are left to kernels": (
        "mT movedim permute swapaxes transpose"
    ),
    "torch.cat and torch.stack join tensors": "concat concatenate dstack hstack vstack",
    "the shape of a tensor is a tuple": "Size",
    "the device is torch.ahbm, and every tensor is on it": (
        "cpu cuda get_default_device mps set_default_device xpu"
    ),
    "kernbench runs kernels and collectives, and has neither modules nor gradients": (
        "amp autocast autograd backward compile enable_grad export fx grad grad_fn inference_mode "
        "jit library load nn no_grad onnx optim requires_grad_ retain_grad save set_grad_enabled "
        "utils"
    ),
}
"""Advice for the names of PyTorch in each group: what to use instead."""


def absent_in_torch(name: str, known: Sequence[str], methods: Sequence[str]) -> AttributeError:
    """The error for an attribute that `torch` lacks: advice for names of PyTorch and of the
    `methods` of tensors, else the nearest of the `known` names.
    """
    if name in methods and not name.startswith("_"):
        return AttributeError(f"kernbench's torch has no {name}; tensors have it: x.{name}")
    return _absent("torch", name, known)


def absent_in_tensor(name: str, known: Sequence[str]) -> AttributeError:
    """The error for an attribute that tensors lack, with the same advice."""
    return _absent("Tensor", name, known)


def _absent(owner: str, name: str, known: Sequence[str]) -> AttributeError:
    for advice, names in ADVICE.items():
        if name in names.split():
            return AttributeError(f"kernbench's {owner} has no {name}; {advice}")
    return absent_attribute(owner, name, known)
