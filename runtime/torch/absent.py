"""Names of PyTorch that kernbench lacks: an `AttributeError` with what to use instead, or the
nearest name that exists.
"""

from collections.abc import Sequence

from runtime.core.dtypes import ALL
from runtime.core.errors import nearest

_TYPES = ", ".join(repr(dtype) for dtype in ALL)

_ADVICE = {
    "make the values with numpy and torch.from_numpy(...) or torch.tensor(...)": (
        "asarray bernoulli complex logspace meshgrid multinomial normal randint_like seed tril triu"
    ),
    f"the element types are {_TYPES}": (
        "cdouble cfloat complex64 complex128 float8_e4m3fn float8_e5m2 int16 short uint16 uint32 "
        "uint64"
    ),
    "compute in a kernel started with torch.launch(name, kernel, ...), or in numpy with "
    "tensor.numpy()": (
        "addmm argmax argmin baddbmm bmm concat "
        "cumsum dot einsum erf flatten fma gather gelu isnan layer_norm "
        "log_softmax mv norm prod reciprocal "
        "reshape rsqrt scatter silu square squeeze std "
        "tensordot topk transpose unsqueeze var vmap where"
    ),
    "the device is torch.ahbm, and every tensor is on it": (
        "cpu cuda get_default_device mps set_default_device xpu"
    ),
    "kernbench runs kernels and collectives, and has neither modules nor gradients": (
        "Size amp autocast autograd compile enable_grad export fx inference_mode jit library load "
        "nn no_grad onnx optim profiler save set_grad_enabled utils"
    ),
}
"""What to use instead of the names of PyTorch in each group."""


def absent_attribute(module: str, name: str, known: Sequence[str]) -> AttributeError:
    """The error for an attribute that a module lacks, with the nearest of the `known` names."""
    return AttributeError(f"kernbench's {module} has no {name}{nearest(name, known)}")


def absent_in_torch(name: str, known: Sequence[str]) -> AttributeError:
    """The error for an attribute that `torch` lacks: advice for names of PyTorch, else the nearest
    of the `known` names.
    """
    for advice, names in _ADVICE.items():
        if name in names.split():
            return AttributeError(f"kernbench's torch has no {name}; {advice}")
    return absent_attribute("torch", name, known)
