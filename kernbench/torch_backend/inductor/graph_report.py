"""The report of compiled graphs: how many have generated kernels, and which run as operators."""

from collections import Counter

from runtime.device.rank.rank_state import running_rank


class GraphReport:
    """The graphs of a rank, which are reported at its end."""

    def __init__(self, rank: int) -> None:
        self._rank = rank
        self.compiled = 0
        self.eager = Counter[str]()
        self.launches = Counter[str]()

    @classmethod
    def of_rank(cls) -> "GraphReport":
        """The report of the running rank."""
        state = running_rank()
        report = next((each for each in state.at_end if isinstance(each, cls)), None)
        if report is None:
            report = cls(state.rank)
            state.at_end.append(report)
        return report

    def __call__(self) -> None:
        """Print a line; ranks compile the same graphs, as a rule."""
        if self._rank:
            return
        count, kernels = sum(self.launches.values()), len(self.launches)
        line = (
            f"rank 0: torch.compile: {self.compiled} graphs, {count:,} launches of {kernels} "
            "generated kernels"
        )
        if self.eager:
            reasons = "; ".join(f"{reason}: {number}" for reason, number in self.eager.items())
            line += f"; graphs that run as operators: {self.eager.total()} ({reasons})"
        else:
            line += ", graphs that run as operators: none"
        print(line, flush=True)
