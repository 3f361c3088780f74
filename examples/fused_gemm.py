"""A linear layer with its activation in one composite: gelu(x @ weight + bias), with the columns
divided over PEs.

Run it on any number of PEs:

    kernbench --sips 2 examples/fused_gemm.py                      # all PEs of two SIPs
    kernbench --sips 1 examples/fused_gemm.py --cubes 1 --pes 1    # one PE
"""

import argparse

import numpy as np

from kernbench import DPPolicy, tl, torch


def linear_gelu(
    x: tl.Pointer, weight: tl.Pointer, bias: tl.Pointer, y: tl.Pointer, shape: tuple[int, int, int]
) -> None:
    """Kernel: the `n` columns of gelu(x @ weight + bias) whose weights this PE holds."""
    m, k, n = shape
    pe = tl.program_id(1) * tl.num_programs(0) + tl.program_id(0)
    a = tl.ref(x, (m, k))
    b = tl.ref(weight + pe * k * n, (k, n))
    out = tl.ref(y + pe * m * n, (m, n))
    row = tl.load(bias + pe * n, n)
    tl.composite("gemm", a, b, out, bias=row, activation="gelu")


def run(
    cubes: int | None = None, pes: int | None = None, m: int = 48, k: int = 200, n: int = 40
) -> None:
    """Give every PE `n` columns of float16, run the kernel, and compare with numpy in float64."""
    rank, device = torch.ahbm.current_device(), torch.ahbm.get_device_properties()
    count = (cubes or device.cubes) * (pes or device.pes_per_cube)
    everywhere = DPPolicy(num_cubes=cubes, num_pes=pes)
    columns = DPPolicy(cube="column_wise", pe="column_wise", num_cubes=cubes, num_pes=pes)
    draw = np.random.default_rng(rank).normal
    x, weight, bias = (
        draw(size=size).astype(np.float16) for size in ((m, k), (k, count * n), (count * n,))
    )

    y = torch.empty(m, count * n, dtype=torch.float16, dp=columns)
    on_device = (
        torch.from_numpy(x, dp=everywhere),
        torch.from_numpy(weight, dp=columns),
        torch.from_numpy(bias, dp=columns),
    )
    launch = torch.launch("linear_gelu", linear_gelu, *on_device, y, (m, k, n))

    total = x.astype(np.float64) @ weight.astype(np.float64) + bias
    expected = 0.5 * total * (1 + np.tanh(np.sqrt(2 / np.pi) * (total + 0.044715 * total**3)))
    # One rounding to float16, and the roundings of sums of up to 128 in float32.
    np.testing.assert_allclose(y.numpy(), expected, rtol=float(np.finfo(np.float16).eps), atol=1e-4)
    verdict = "right to one rounding" if torch.ahbm.has_data() else "not checked"
    shapes = f"{x.shape} x {weight.shape}"
    print(
        f"rank {rank}: gelu of {shapes} float16, PEs: {count}, {verdict}, "
        f"{launch.pe_exec_ps / 1000:,.3f} ns"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cubes", type=int, help="cubes of a SIP that take part [all]")
    parser.add_argument("--pes", type=int, help="PEs of each of them [all]")
    run(**vars(parser.parse_args()))
