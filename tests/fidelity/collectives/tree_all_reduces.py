"""All-reduces of all cubes and SIPs by `intercube`, or of all PEs by `hierarchical`, against their
closed form.

`python -m tests.fidelity.collectives.tree_all_reduces` simulates float32 tensors of 64 KiB to 1 MiB
on PE 0 of every cube of 2, 3, 4 and 8 SIPs, without data. Every line has the time of the kernels,
the form (docs/internals/collective-forms.md), their ratio, and the resource that limits the form.
`--help` lists the flags; `hierarchical` has eight times as many PEs, and takes minutes for 1 MiB.
"""

import argparse
from collections.abc import Iterator, Sequence

from kernbench import DPPolicy, simulate, torch
from kernbench.oracle.theory.topology_file import TopologyFile
from runtime.core.config.config_file import default_file, read_text
from runtime.core.trace import OpRecord
from tests.fidelity.theory.tree_all_reduce import TreeAllReduceTimes

PACKET_BYTES, ITEM_BYTES = 2048, 4


def measured_ps(file: TopologyFile, algorithm: str, pes: int, nbytes: int) -> int:
    """The time from the start of the first kernel to the end of the last one."""
    kernels = list[OpRecord]()

    def program(_rank: int) -> None:
        torch.distributed.init_process_group("ahbm", algorithm=algorithm)
        policy = DPPolicy(cube="row_wise", pe="row_wise", num_pes=pes)
        shape = file.cubes * pes, nbytes // ITEM_BYTES
        torch.distributed.all_reduce(torch.empty(shape, dtype=torch.float32, dp=policy))
        torch.ahbm.synchronize()

    def keep(_sip: int, records: Sequence[OpRecord]) -> None:
        kernels.extend(each for each in records if each.engine == "pe_cpu.collective")

    sips = int(file["system.sips.count"])
    simulate(program, sips, topology=file.text, data=False, on_records=keep)
    return max(each.end_ps for each in kernels) - min(each.start_ps for each in kernels)


def rows(algorithm: str, sips: Sequence[int], sizes_kib: Sequence[int]) -> Iterator[str]:
    """The lines of the table."""
    yield f"{'SIPs':>5}{'KiB':>7}{'time (us)':>12}{'form (us)':>12}{'ratio':>8}  limit"
    shipped = TopologyFile.of(read_text(default_file("topology.yaml")))
    pes = shipped.pes_per_cube if algorithm == "hierarchical" else 1
    for count in sips:
        file = shipped.on_a_ring(count)
        theory = TreeAllReduceTimes(file, pes, PACKET_BYTES)
        for kib in sizes_kib:
            nbytes = kib << 10
            time_ps, form_ps = (
                measured_ps(file, algorithm, pes, nbytes),
                theory.form_ps(count, nbytes),
            )
            times = f"{time_ps / 1e6:>12.2f}{form_ps / 1e6:>12.2f}{time_ps / form_ps:>8.3f}"
            yield f"{count:>5}{kib:>7}{times}  {theory.busiest(count, nbytes).resource}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="all-reduces over trees, against their form")
    parser.add_argument("--algorithm", choices=("intercube", "hierarchical"), default="intercube")
    parser.add_argument("--sips", type=int, nargs="+", default=[2, 3, 4, 8])
    parser.add_argument("--kib", type=int, nargs="+", default=[64, 256, 1024])
    given = parser.parse_args()
    for row in rows(given.algorithm, given.sips, given.kib):
        print(row, flush=True)
