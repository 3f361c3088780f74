"""`x.data = y` across devices, and errors of hooks of gradients; a line `= name | outcome` for each
case.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn

D = "ahbm"


def data_of_another_device() -> str:
    weight = nn.Parameter(torch.ones(3))
    optimizer = torch.optim.SGD([weight], lr=1.0)
    seen = []
    for device in (D, "cpu"):
        weight.data = weight.data.to(device)
        optimizer.zero_grad()
        (weight * 2).sum().backward()
        optimizer.step()
        seen.append((weight.device.type, weight.grad.device.type, weight.tolist()))
    return str(seen)


def data_without_elements() -> str:
    weight = nn.Parameter(torch.ones(3, device=D))
    return raised(lambda: setattr(weight, "data", torch.empty(3, device="meta")))


def raised(call: Callable[[], object]) -> str:
    try:
        call()
    except (RuntimeError, SystemError, TypeError, ValueError) as error:
        return f"{type(error).__name__}: {error}"
    return "no error"


def backward_with(hook: Callable[[Tensor], object], *, after: bool) -> str:
    x = torch.ones(3, device=D, requires_grad=True)
    (x.register_post_accumulate_grad_hook if after else x.register_hook)(hook)
    return raised((x * 2).sum().backward)


def of_the_hook(_: Tensor) -> None:
    raise ValueError("of the hook")


print("= data |", data_of_another_device())
print("= no elements |", data_without_elements())
print("= error |", backward_with(of_the_hook, after=False))
print("= no tensor |", backward_with(lambda _: 3, after=False))
print("= no tensor after |", backward_with(lambda _: 3, after=True))
