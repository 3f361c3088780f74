"""The rows of a `StridedBlock` of `sip_node.chip.strided_block` in C, one after the other."""

cdef struct Rows:
    # The fields of the block, and where the next part begins: a row, and bytes of it to skip.
    long long row_bytes
    long long pitch
    long long plane_rows
    long long plane_pitch
    long long row
    long long skip


cdef inline Rows rows_from(object rows, long long begin) except *:
    """The rows of a block from its packed byte `begin` on."""
    cdef Rows left
    left.row_bytes, left.pitch, left.plane_rows, left.plane_pitch = rows
    left.row, left.skip = begin // left.row_bytes, begin % left.row_bytes
    return left


cdef inline long long start_of(Rows *left) noexcept:
    """Where the next part begins, in bytes from the start of the first row."""
    cdef long long row = left.row, start = left.skip
    if left.plane_rows:
        start += row // left.plane_rows * left.plane_pitch
        row = row % left.plane_rows
    return start + row * left.pitch


cdef inline long long pass_row(Rows *left, long long most) noexcept:
    """Pass the rest of the row, at most `most` bytes; returns how many."""
    cdef long long count = min(left.row_bytes - left.skip, most)
    left.row, left.skip = left.row + 1, 0
    return count
