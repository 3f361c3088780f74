"""The barrier of the PEs of a launch in the mock runtime."""

from runtime.core.coordinates import PeCoordinates
from runtime.language.mock.queues import MockQueues


class MockBarrier:
    """Common to the `pes` of a launch; each time that all of them have come, they go on. A cube has
    a barrier of its own.
    """

    def __init__(self, pes: list[PeCoordinates]) -> None:
        self._pes = pes
        self._waiting: list[PeCoordinates] = []
        self._passed = 0
        self._of_cubes: dict[int, MockBarrier] = {}

    def of_cube(self, cube: int) -> "MockBarrier":
        """The barrier of the PEs in one cube."""
        if cube not in self._of_cubes:
            self._of_cubes[cube] = MockBarrier([each for each in self._pes if each.cube == cube])
        return self._of_cubes[cube]

    def wait(self, queues: MockQueues) -> None:
        """Let other PEs run until all have called it."""
        self._waiting.append(queues.coordinates)
        queues.moves += 1
        passed = self._passed
        if len(self._waiting) == len(self._pes):
            self._waiting.clear()
            self._passed += 1
        # Described where the run hangs, when no PE comes any more.
        queues.until(lambda: self._passed > passed, self._described)

    def _described(self) -> str:
        missing = [str(each) for each in self._pes if each not in self._waiting]
        return f"barrier, without {', '.join(missing)}"
