"""The report of single elements: addresses that no descriptor and no list of rows describes."""

from kernbench.triton.tape.tape import TapeCounts
from kernbench.triton.triton_kernel import TritonKernel
from runtime.device.rank.rank_state import running_rank


class ElementReport:
    """The transfers of each kernel of a rank, which are reported at its end."""

    def __init__(self, rank: int) -> None:
        self._rank = rank
        self._launched: dict[str, list[TapeCounts]] = {}

    @classmethod
    def note(cls, kernel: TritonKernel) -> None:
        """Count a launch of a kernel."""
        state = running_rank()
        report = next((each for each in state.at_end if isinstance(each, cls)), None)
        if report is None:
            report = cls(state.rank)
            state.at_end.append(report)
        report._launched.setdefault(kernel.__name__, []).append(kernel.counts)

    def __call__(self) -> None:
        """Print a line for each kernel with single elements; ranks run the same kernels."""
        running_rank().device.synchronize()
        for name, launches in self._launched.items():
            elements = sum(each.elements for each in launches)
            if elements and not self._rank:
                print(
                    f"rank 0: kernel {name!r} moves {elements:,} elements one by one, which is "
                    "slow: its addresses have no pattern",
                    flush=True,
                )
