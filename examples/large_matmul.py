"""A square matrix product on all processing elements of every SIP, beside its roofline.

Run it with `kernbench --sips 1 --no-trace examples/large_matmul.py --size 4096`. Each SIP
multiplies matrices of its own. The blocks of the result form a grid over the processing elements,
each of which loads the rows and columns that its block needs.
"""

import argparse

import numpy as np

from kernbench import torch


def roofline_ns(size: int) -> float:
    """The time of `size`³ products at the peak rate of all PEs; 1 TFLOPS is 1000 a ns."""
    properties = torch.ahbm.get_device_properties()
    return 2 * size**3 / (properties.peak_gemm_tflops_per_pe * properties.pe_count * 1000)


def run() -> None:
    """Multiply, compare every element with numpy, and print the time and the share of the peak."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=256, help="rows and columns of each matrix")
    size = parser.parse_args().size
    torch.distributed.init_process_group("ahbm")
    rank = torch.distributed.get_rank()
    rng = np.random.default_rng(rank)
    operands = [rng.standard_normal((size, size), np.float32).astype(np.float16) for _ in range(2)]
    x = torch.from_numpy(operands[0])
    w = torch.from_numpy(operands[1])
    torch.ahbm.synchronize()
    began_ps = torch.ahbm.elapsed_ps()
    y = torch.matmul(x, w)
    torch.ahbm.synchronize()
    taken_ns = (torch.ahbm.elapsed_ps() - began_ps) / 1000
    if torch.ahbm.has_data():
        exact = operands[0].astype(np.float32) @ operands[1].astype(np.float32)
        # Two roundings to float16 of half a unit in the last place each, and sums of `size`
        # products in float32 in another order.
        np.testing.assert_allclose(y.numpy(), exact, rtol=2**-10, atol=1e-5 * size)
    verdict = "equal to numpy" if torch.ahbm.has_data() else "not checked"
    bound_ns = roofline_ns(size)
    print(
        f"rank {rank}: {size}³ in {taken_ns:,.1f} ns, roofline {bound_ns:,.1f} ns, "
        f"{bound_ns / taken_ns:.1%} of the peak, {verdict}"
    )
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    run()
