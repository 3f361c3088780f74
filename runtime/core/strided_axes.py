"""The axes of a strided block as a DMA descriptor holds them: rows, at up to two pitches.

    elements of a row, next to each other          axis (length, 1)
    rows of a plane, at one pitch                  axis (length, pitch)
    planes, at a second pitch                      axis (length, pitch)

A part `[i, :, j0:j1]` of a tensor needs rows at one pitch, `[:, :, j0:j1]` as well, since its outer
axes are one axis in memory; `[:, i0:i1, j0:j1]` needs both pitches. A transposed matrix is planes
of rows of one element. Shapes and strides count elements.
"""

MOST_AXES = 3
"""Axes of a descriptor at most: the elements of a row, the rows of a plane, the planes."""

Axes = list[tuple[int, int]]
"""(length, stride) of each axis, outermost first."""


def merged_axes(shape: tuple[int, ...], strides: tuple[int, ...]) -> Axes:
    """The axes of a block, those merged that are one axis in memory; none of length 1."""
    axes: Axes = []
    for length, stride in zip(shape, strides, strict=True):
        # Its stride is never used.
        if length == 1:
            continue
        # The outer axis steps exactly over the inner one: together they are one axis.
        if axes and axes[-1][1] == length * stride:
            axes[-1] = (axes[-1][0] * length, stride)
        else:
            axes.append((length, stride))
    return axes


def descriptor_axes(shape: tuple[int, ...], strides: tuple[int, ...]) -> Axes:
    """The merged axes with a last one of stride 1: at most `MOST_AXES` fit into a descriptor."""
    axes = merged_axes(shape, strides)
    # No axis is contiguous: each element is a row.
    if not axes or axes[-1][1] != 1:
        axes.append((1, 1))
    return axes
