"""Two linear layers divided over two SIPs, the smallest program with `kernbench.tp`.

It starts its own ranks: `python examples/tensor_parallel_mlp.py`.
"""

from kernbench import torch, tp

RANKS = 2


def main(rank: int) -> None:
    """Divide the layers over the ranks; y is 16 x 0.1 x 0.02 x 16 x 0.03 for each rank."""
    torch.distributed.init_process_group("ahbm")
    tp.initialize_model_parallel(RANKS)
    first = tp.ColumnParallelLinear(16, 16 * RANKS)
    second = tp.RowParallelLinear(16 * RANKS, 16)
    first.weight.copy_(0.02)
    second.weight.copy_(0.03)
    y = second(first(torch.full((4, 16), 0.1, dtype=torch.float16))).numpy()
    if torch.ahbm.has_data():
        # Three units in the last place of float16 between 2^-6 and 2^-5.
        assert abs(y - 0.01536 * RANKS).max() <= 3 * 2**-16, y
    if rank == 0:
        print(f"y of {y.shape}: {y[0, :3]} ...")


if __name__ == "__main__":
    torch.multiprocessing.spawn(main, nprocs=RANKS)
