"""The open files of an LP do not grow with the number of LPs, except those of LP 0."""

from pathlib import Path

import pytest

from coordinator.plan import Plan, ProgramSpec, load_config
from coordinator.session import Session
from runtime.wire.control import Status
from tests.support.sessions import Recorder, fake_launcher
from tests.support.topologies import variant_text

pytestmark = [pytest.mark.slow, pytest.mark.multiproc, pytest.mark.nightly]

CHIPS = {
    "sip__cube_mesh": {"w": 1, "h": 1},
    "cube__pe_layout__pe_per_corner": 1,
    "cube__pe_layout__corners": ["NW", "SE"],
}
PROGRAM = ProgramSpec(
    "bench",
    "ccl",
    "kernbench.benches.ccl_allreduce:ccl_allreduce",
    {"algorithm": "ring", "min_bytes": 4096, "max_bytes": 4096},
)


class FileCounter(Recorder):
    """Counts the open files of every LP while the run takes place."""

    def __init__(self) -> None:
        super().__init__()
        self.most: dict[int, int] = {}

    def status(self, status: Status, sips: tuple[int, ...]) -> None:
        # Each LP has one SIP.
        for lp in sips:
            files = len(list(Path(f"/proc/{self.pids[lp]}/fd").iterdir()))
            self.most[lp] = max(files, self.most.get(lp, 0))


def files_of_lps(sips: int, tmp_path: Path) -> dict[int, int]:
    """The most open files of each LP of a run on a ring."""
    topology = tmp_path / "chips.yaml"
    topology.write_text(variant_text(**CHIPS))
    counter = FileCounter()
    plan = Plan(load_config(topology, None, sips), PROGRAM, procs=sips)
    result = Session(plan, fake_launcher("real"), counter).run()
    assert result.error is None, result.error
    return counter.most


@pytest.mark.timeout(600)
def test_an_lp_of_a_long_ring_has_the_open_files_of_one_of_a_short_ring(tmp_path: Path):
    few, many = files_of_lps(8, tmp_path), files_of_lps(64, tmp_path)
    # LP 1 and the last LP are neighbours of LP 0, which is a peer of all.
    for lp, files in many.items():
        if lp > 0:
            assert abs(files - few[3]) <= 4 + 4 * (lp in (1, 63))
    print(sorted(few.items()), sorted(many.items()))
    assert many[0] > few[0]
