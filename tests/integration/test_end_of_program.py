"""Functions that a program registers for its end run in its rank, after it, in simulated time."""

from kernbench import torch
from runtime.device.rank.rank_state import running_rank
from tests.support.world import simulate


def test_it_is_called_when_the_program_has_returned_and_may_wait_for_the_device():
    seen: list[tuple[str, float]] = []

    def at_end() -> None:
        torch.zeros(1 << 12).numpy()
        seen.append(("end", torch.ahbm.now_ns()))

    def program(_rank: int) -> str:
        running_rank().at_end.append(at_end)
        seen.append(("program", torch.ahbm.now_ns()))
        return "result"

    assert simulate(program, 1).returned[0] == "result"
    assert [name for name, _ in seen] == ["program", "end"]
    assert seen[0][1] < seen[1][1]
