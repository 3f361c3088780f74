"""Closed tours over the positions of a grid, in which each step leads to a neighbour where such a
tour exists.

A ring of PEs or of SIPs that follows such a tour uses every link of it once; a ring in the order of
the numbers has steps from the end of a row to the begin of the next one, which pass through others.
"""


def grid_cycle(w: int, h: int, *, wraps: bool = False) -> tuple[int, ...]:
    """The positions of a row-major grid of `w` columns and `h` rows in the order of a closed tour.

    Every step leads to a neighbour if the grid has an even side and no side of length 1, or if it
    wraps round (a Hamiltonian cycle of the grid). A grid of two odd sides that does not wrap has no
    such cycle, since its positions cannot be coloured like a chess board with as many black as
    white ones: one step has length 2. On an open line, all steps but two have length 2:
    to the even positions, and back to the odd ones.

    >>> grid_cycle(2, 2)
    (0, 1, 3, 2)
    >>> grid_cycle(4, 2)
    (0, 1, 2, 3, 7, 6, 5, 4)
    >>> grid_cycle(3, 3)
    (0, 1, 2, 5, 8, 7, 4, 3, 6)
    >>> grid_cycle(5, 1)
    (0, 2, 4, 3, 1)
    """
    if min(w, h) == 1:
        count = w * h
        # Even positions from the first to the last one, then odd ones from the last to the first.
        folded = (*range(0, count, 2), *reversed(range(1, count, 2)))
        return tuple(range(count)) if wraps else folded
    # A snake that returns through column 0 needs an even number of rows; else columns are rows.
    if h % 2 == 0:
        cells = _snake(w, h)
    elif w % 2 == 0:
        cells = [(row, column) for column, row in _snake(h, w)]
    elif wraps:
        cells = _columns_of_torus(w, h) if w >= h else _columns_of_torus_turned(w, h)
    else:
        cells = _odd_sides(w, h)
    return tuple(row * w + column for row, column in cells)


def _snake(w: int, h: int) -> list[tuple[int, int]]:
    """(row, column) along the rows of an even number of rows, and back up through column 0."""
    cells = [(0, column) for column in range(w)]
    for row in range(1, h):
        columns = range(1, w) if row % 2 == 0 else reversed(range(1, w))
        cells += [(row, column) for column in columns]
    return cells + [(row, 0) for row in reversed(range(1, h))]


def _odd_sides(w: int, h: int) -> list[tuple[int, int]]:
    """The snake of all rows but the last one, with detours into the last row."""
    cells = list[tuple[int, int]]()
    last = h - 1
    for cell in _snake(w, last):
        row, column = cell
        below = row == last - 1
        # The row above the last one is passed from the highest column to the lowest: down from
        # even columns, and up again to the column before.
        if below and column % 2 == 1:
            cells += [(last, column), cell]
        elif below:
            cells += [cell, (last, column)]
        else:
            cells.append(cell)
    return cells


def _columns_of_torus(w: int, h: int) -> list[tuple[int, int]]:
    """Column by column round a torus of odd sides, w >= h.

    A column that is passed downwards from row r ends in row r - 1, one that is passed upwards in
    row r + 1. The next column begins in that row. With (w - h)/2 columns upwards and the others
    downwards, the last one ends in row -h, which is row 0, where column 0 began.
    """
    cells, begin = list[tuple[int, int]](), 0
    for column in range(w):
        step = -1 if column < (w - h) // 2 else 1
        cells += [((begin + step * row) % h, column) for row in range(h)]
        begin -= step
    return cells


def _columns_of_torus_turned(w: int, h: int) -> list[tuple[int, int]]:
    return [(row, column) for column, row in _columns_of_torus(h, w)]
