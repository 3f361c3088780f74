"""A script of Triton as its authors write it: the driver names the device."""

import torch
import triton
import triton.language as tl

DEVICE = triton.runtime.driver.active.get_active_torch_device()


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(axis=0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x + y, mask=mask)


def add(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    n = out.numel()
    add_kernel[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](x, y, out, n, BLOCK=1024)
    return out


x, y = torch.arange(9843.0), torch.arange(9843.0).flip(0)
out = add(x.to(DEVICE), y.to(DEVICE))
print("= equal", bool((out.cpu() == x + y).all()))
strided = torch.arange(64.0).reshape(8, 8)
column = strided.to(DEVICE)[:, 3].contiguous()
print("= column", bool((add(column, column).cpu() == 2 * strided[:, 3]).all()))
try:
    add_kernel[(1,)](x.to(DEVICE), y, out, 8, BLOCK=8)
except ValueError as error:
    print("= error", error)
