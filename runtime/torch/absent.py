"""Names of PyTorch that kernbench lacks: an `AttributeError` with what to use instead, or the
nearest name that exists.
"""

from collections.abc import Sequence

from runtime.core.dtypes import ALL
from runtime.core.errors import nearest

_TYPES = ", ".join(repr(dtype) for dtype in ALL)

_ADVICE = {
    "make the values with numpy and torch.from_numpy(...) or torch.tensor(...)": (
        "arange as_tensor asarray bernoulli complex empty_like eye full_like Generator linspace "
        "logspace manual_seed meshgrid multinomial normal ones_like rand rand_like randint "
        "randint_like randn randn_like randperm seed tril triu zeros_like"
    ),
    f"the element types are {_TYPES}": (
        "bool cdouble cfloat complex64 complex128 double float float64 float8_e4m3fn float8_e5m2 "
        "int int16 int64 long short uint8 uint16 uint32 uint64"
    ),
    "compute in a kernel started with torch.launch(name, kernel, ...), or in numpy with "
    "tensor.numpy()": (
        "abs add addmm all allclose any argmax argmin baddbmm bmm cat chunk clamp concat cos "
        "cumsum div dot einsum eq equal erf exp flatten fma gather gelu isnan layer_norm log "
        "log_softmax max maximum mean min minimum mul mv neg norm pow prod reciprocal "
        "relu reshape rsqrt scatter sigmoid silu sin softmax split sqrt square squeeze stack std "
        "sub sum tanh tensordot topk transpose unsqueeze var vmap where"
    ),
    "the device is torch.ahbm, and every tensor is on it": (
        "cpu cuda device get_default_device mps set_default_device xpu"
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
