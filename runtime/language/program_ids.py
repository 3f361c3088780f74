"""Results of `tl.program_id` and `tl.num_programs`: coordinates of a PE, or a point of a grid."""

from runtime.core.program_grid import MOST_AXES, GridPoint, ProgramGrid


class ProgramIds:
    """The ids of the programs of one PE.

    Without a grid, a PE runs one program: axis 0 is the PE in its cube, axis 1 the cube. `own` is
    (pe, cube), `launched` the PEs per cube and the cubes of the launch. With a grid, `program` is
    the program that runs.
    """

    def __init__(
        self, own: tuple[int, int], launched: tuple[int, int], grid: ProgramGrid | None = None
    ) -> None:
        self._own, self._launched, self._grid = own, launched, grid
        self.program: GridPoint | None = None

    def program_id(self, axis: int) -> int:
        """The id on an axis, 0 on one that the grid has not; `ValueError` for another axis."""
        return self._on(axis, self.own, 0)

    def has(self, axis: int) -> bool:
        """Whether programs differ on an axis: one of the grid, or of the PEs."""
        return axis < len(self.own)

    @property
    def own(self) -> tuple[int, ...]:
        """The ids of the program that runs, by axis."""
        return self._own if self.program is None else self.program

    def num_programs(self, axis: int) -> int:
        """The number of ids on an axis, 1 on one that the grid has not; `ValueError` likewise."""
        return self._on(axis, self._launched if self._grid is None else self._grid.lengths, 1)

    def _on(self, axis: int, values: tuple[int, ...], missing: int) -> int:
        if self._grid is None and axis not in (0, 1):
            raise ValueError(
                f"axis {axis}: programs have axis 0 (PE in its cube) and axis 1 (cube)"
            )
        if axis not in range(MOST_AXES):
            raise ValueError(f"axis {axis}: a grid has axes 0, 1 and 2")
        return values[axis] if axis < len(values) else missing
