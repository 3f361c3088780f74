"""The tokens of a product in C; see `sip_node.chip.pe.step_tokens`.

A step is a row, a depth and a column by index. What steps share, the shapes and the tiles of the
operands, is in lists by these indices: a look-up by spans hashes nested tuples for every step.
"""

from collections import deque

from sip_node.compiled.streamed_matrix cimport StreamedMatrix
from sip_node.compiled.staged_matrix cimport StagedMatrix
from sip_node.chip.pe.tile_buffers cimport FreeList
from sip_node.compiled.tile_token cimport Token


cdef class TokenSource:
    """The twin of `ReferenceStepTokens`; `tile_type` is the class of a step's tile."""

    def __init__(self, tile_type, *, gemm, plan, shapes, tuple sources not None, output_of, routes,
                 long long submitted_ps, FreeList buffers not None):
        self.tile_type = tile_type
        self.gemm, self.shapes, self.sources, self.output_of = gemm, shapes, sources, output_of
        self.source_a, self.source_b = sources
        self.steps, self.whole = routes
        self.submitted_ps, self.buffers = submitted_ps, buffers
        self.rows, self.depths, self.columns = plan.spans
        self.tiles_a = [None] * (len(self.rows) * len(self.depths))
        self.tiles_b = [None] * (len(self.depths) * len(self.columns))
        self.shapes_of = {}

    def __iter__(self):
        return self

    def __next__(self):
        """The token of the next step; takes its buffers, one pair of which is free."""
        token = self.following()
        if token is None:
            raise StopIteration
        return token

    cdef Token following(self):
        """The token of the next step, None after the last one."""
        cdef Token token
        cdef Py_ssize_t depths = len(self.depths)
        if self.row == len(self.rows):
            return None
        rows, columns = self.rows[self.row], self.columns[self.column]
        depth = self.depths[self.depth]
        token = Token.__new__(Token)
        token.first, token.last = self.depth == 0, self.depth == depths - 1
        if token.first:
            self.begin_output(rows, columns)
            if self.calendar is not None:
                self.calendar.mark()
        token.gemm, token.sources, token.output = self.gemm, self.sources, self.output
        token.tile_type, token.rows, token.depth, token.columns = (
            self.tile_type, rows, depth, columns
        )
        token.shape = self.output_shapes[self.depth]
        token.route = self.whole if token.last else self.steps
        token.submitted_ps, token.loading, token.index = self.submitted_ps, 2, self.index
        token.tile_a = self.tile(
            self.tiles_a, self.row * depths + self.depth, self.source_a, rows, depth
        )
        token.tile_b = self.tile(
            self.tiles_b, self.depth * len(self.columns) + self.column, self.source_b, depth,
            columns,
        )
        token.buffer = self.buffers.take()
        self.index += 1
        self.go_on(depths)
        return token

    cdef object tile(
        self, list tiles, Py_ssize_t index, object source, object rows, object columns
    ):
        """A tile of an operand."""
        found = tiles[index]
        if found is None and isinstance(source, StreamedMatrix):
            found = tiles[index] = (<StreamedMatrix> source).tile_at(rows, columns)
        elif found is None and isinstance(source, StagedMatrix):
            found = tiles[index] = (<StagedMatrix> source).tile_at(rows, columns)
        elif found is None:
            found = tiles[index] = source.at(rows, columns)
        return found

    cdef int begin_output(self, object rows, object columns) except -1:
        cdef Py_ssize_t last = len(self.depths) - 1
        self.output = self.output_of(rows, columns)
        size = rows[1] - rows[0], columns[1] - columns[0]
        found = self.shapes_of.get(size)
        if found is None:
            found = self.shapes_of[size] = [
                self.shapes[(size[0], stop - start, size[1]), index == last]
                for index, (start, stop) in enumerate(self.depths)
            ]
        self.output_shapes = found
        return 0

    cdef int go_on(self, Py_ssize_t depths) except -1:
        """To the next step: depth innermost, then columns, then rows."""
        self.depth += 1
        if self.depth == depths:
            self.depth = 0
            self.column += 1
            if self.column == len(self.columns):
                self.column = 0
                self.row += 1
        return 0

    cdef int go_to(self, long long index) except -1:
        """Make `index` the number of the next step."""
        cdef Py_ssize_t depths = len(self.depths), columns = len(self.columns)
        self.index, self.depth = index, index % depths
        self.column = index // depths % columns
        self.row = index // depths // columns
        return 0

    cdef int relabel(self, Token token) except -1:
        """Make a token in flight that of the step `token.index`, which has the same shape."""
        cdef Py_ssize_t depths = len(self.depths), columns = len(self.columns)
        cdef Py_ssize_t depth = token.index % depths, column = token.index // depths % columns
        cdef Py_ssize_t row = token.index // depths // columns
        token.rows, token.depth, token.columns = (
            self.rows[row], self.depths[depth], self.columns[column]
        )
        token.tile_a = self.tile(
            self.tiles_a, row * depths + depth, self.source_a, token.rows, token.depth
        )
        token.tile_b = self.tile(
            self.tiles_b, depth * columns + column, self.source_b, token.depth, token.columns
        )
        return 0


cdef class TokenQueue:
    """The twin of `ReferenceTokenQueue`."""

    def __init__(self, FreeList buffers not None):
        self.buffers, self.waiting = buffers, deque()
        buffers.when_freed(self.go_on)

    def add(self, TokenSource tokens not None):
        """See `ReferenceTokenQueue.add`."""
        self.waiting.append(tokens)
        self.issue()

    def go_on(self):
        """Buffers are free."""
        self.issue()

    cdef int issue(self) except -1:
        cdef Token token
        while self.waiting and self.buffers.filled:
            # Made one by one: the tokens of a large product would fill memory.
            token = (<TokenSource> self.waiting[0]).following()
            if token is None:
                self.waiting.popleft()
            else:
                token.go_on()
        return 0
