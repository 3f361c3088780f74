"""Calls with types that a CPU refuses: the device raises an error of the same class, which the
program catches, and goes on. Prints a line for each call.
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F  # noqa: N812 - PyTorch's convention

X = torch.arange(1.0, 13.0).view(3, 4)
WEIGHTS = torch.ones(3)

Operator = Callable[..., torch.Tensor]
OF_INTEGERS: tuple[Operator, ...] = (
    *(torch.frac, torch.std, torch.var, torch.norm, torch.mean),
    *(F.silu, F.gelu, F.elu, F.leaky_relu, F.logsigmoid, F.softplus, F.mish),
    lambda x: F.softmax(x, 1),
    lambda x: F.log_softmax(x, 1),
    lambda x: F.layer_norm(x, (4,)),
    lambda x: F.rms_norm(x, (4,)),
    lambda x: F.group_norm(x.view(1, 3, 4), 1),
    lambda x: F.batch_norm(x, None, None, training=True),
    *(lambda x: F.mse_loss(x, x, reduction="none"), lambda x: F.huber_loss(x, x)),
    *(lambda x: torch.lerp(x, x, 0.5), lambda x: torch.hypot(x, x)),
)
"""Operators that a CPU has for floating-point numbers alone."""
OF_FLOATS: tuple[Operator, ...] = (
    *(lambda x: x & x, lambda x: x | x, lambda x: x ^ x, torch.bitwise_not),
    *(lambda x: torch.bitwise_left_shift(x, x), lambda x: torch.bitwise_right_shift(x, x)),
)
"""Operators that a CPU has for integers alone."""
MIXED: tuple[Operator, ...] = (
    lambda x: x.bfloat16() @ x.t(),
    lambda x: F.linear(x, x.bfloat16()),
    lambda x: torch.bmm(x[None], x[None].bfloat16().mT),
    lambda x: torch.mv(x, x[0].bfloat16()),
    lambda x: torch.dot(x[0], x[0].bfloat16()),
    lambda x: F.conv1d(x[None], x[None].bfloat16()),
)
"""Products of two types."""


def refusal(call: Operator, x: torch.Tensor) -> str:
    """The class of the error, or the result."""
    try:
        return str(call(x).cpu())
    except (NotImplementedError, RuntimeError) as error:
        return type(error).__name__


CALLS = [(each, X.long()) for each in OF_INTEGERS] + [(each, X) for each in (*OF_FLOATS, *MIXED)]
for number, (function, operand) in enumerate(CALLS):
    own, expected = (refusal(function, operand.to(device)) for device in ("ahbm", "cpu"))
    print(f"{number} | {own} | {expected}", flush=True)
assert WEIGHTS.to("ahbm").sum().item() == len(X)
