"""A run inside this process, with its result as objects: `python examples/simulate_in_process.py`.

Each rank adds one to a tensor on its SIP. `simulate` runs both ranks and returns what they have
returned, the simulated time, the digest and the operations of every engine.
"""

import numpy as np

from kernbench import DPPolicy, simulate, tl, torch

PES, NUMEL = 128, 64


def add_one(x: tl.Pointer, numel: int) -> None:
    """Kernel: add one to the `numel` elements of the shard of this PE."""
    pe = tl.program_id(1) * tl.num_programs(0) + tl.program_id(0)
    shard = x + pe * numel
    tl.store(shard, tl.load(shard, numel) + 1)


def program(rank: int) -> np.ndarray:
    """The program of a rank: its tensor after the launch."""
    values = np.arange(PES * NUMEL, dtype=np.float32) + rank
    x = torch.from_numpy(values, dp=DPPolicy(cube="row_wise", pe="row_wise"))
    torch.launch("add_one", add_one, x, NUMEL)
    return x.numpy()


def main() -> None:
    """Simulate two SIPs and print what the result has."""
    run = simulate(program, sips=2)
    print(f"{run.time_ns:,.3f} ns, digest {run.digest[:16]}")
    for rank, values in run.returned.items():
        print(f"rank {rank}: {values[:3]} ... {values[-1]}")
    loads = [op for sip, op in run.of("pe_dma", "load") if sip == 0]
    print(f"sip 0: {len(loads)} loads, {sum(op.nbytes for op in loads)} bytes")


if __name__ == "__main__":
    main()
