"""Overlap: the all-reduce of one layer's gradient runs while the next gradient is computed.

Run it with `kernbench --sips 4 examples/overlap.py`.
"""

import numpy as np

from kernbench import DPPolicy, tl, torch

dist = torch.distributed
LAYERS, N = 4, 64
# The kernel computes a whole product: its tensors lie on one PE.
PE_0 = DPPolicy(num_cubes=1, num_pes=1)


def product(x: tl.Pointer, y: tl.Pointer, z: tl.Pointer) -> None:
    """Kernel: z = x @ y."""
    tl.store(z, tl.dot(tl.load(x, (N, N)), tl.load(y, (N, N))))


def backward(data: np.ndarray, *, overlapped: bool) -> tuple[float, list[np.ndarray]]:
    """The simulated time in ns, and the gradients of all layers, summed over the ranks."""
    errors, *inputs = [torch.from_numpy(each, dp=PE_0) for each in data]
    gradients = [torch.zeros(N, N, dp=PE_0) for _ in inputs]
    # The copies are commands, too; they are not timed.
    torch.ahbm.synchronize()
    began_ps = torch.ahbm.elapsed_ps()
    for layer, gradient in zip(inputs, gradients, strict=True):
        torch.launch("gradient", product, layer, errors, gradient)
        dist.all_reduce(gradient, async_op=overlapped)
    torch.ahbm.synchronize()
    return (torch.ahbm.elapsed_ps() - began_ps) / 1000, [gradient.numpy() for gradient in gradients]


def run() -> None:
    """Compute all gradients without and with overlap. They are integers, so those of numpy must be
    equal.
    """
    dist.init_process_group("ahbm")
    rank, size = dist.get_rank(), (dist.get_world_size(), LAYERS + 1, N, N)
    data = np.random.default_rng(0).integers(-2, 3, size).astype(np.float32)
    (apart_ns, first), (together_ns, second) = (
        backward(data[rank], overlapped=overlapped) for overlapped in (False, True)
    )
    for gradients in first, second:
        np.testing.assert_array_equal(
            np.ma.stack(gradients), np.sum(data[:, 1:] @ data[:, :1], axis=0)
        )
    print(f"rank {rank}: {LAYERS} layers, {apart_ns:,.3f} ns, with overlap {together_ns:,.3f} ns")


if __name__ == "__main__":
    run()
