"""The division of a product: its parts cover each element of the result once, and fit in TCM."""

import numpy as np
import pytest

from kernbench.benches.decoder_layer.projection import EARLY, SCRATCH_BYTES, panel_rows
from kernbench.benches.decoder_layer.shape import Activations, Projection
from kernbench.studies.llama70b_layer.weights import in_panels, in_rows, packed


def shape(tokens: int, depth: int = 512, columns: int = 640) -> Projection:
    return Projection(
        tokens=tokens, depth=depth, columns=columns, out_width=columns // 8, cubes=2, pes=8
    )


def test_the_elements_of_a_row_lie_at_the_index_of_their_layout():
    rows = np.arange(6 * 32).reshape(6, 32)
    layout = Activations(tokens=6, width=8)
    flat = in_panels(rows, 8)
    assert all(flat[layout.start(*index)] == rows[index] for index in np.ndindex(6, 32))
    assert (in_rows(flat, 6, 8) == rows).all()


def test_the_runs_of_some_columns_end_at_the_panels():
    layout = Activations(tokens=1, width=8)
    assert list(layout.runs(6, 13)) == [(0, 2), (2, 8), (10, 3)]
    assert list(layout.runs(8, 8)) == [(0, 8)]


@pytest.mark.parametrize("tokens", [1, 64, 128])
def test_every_element_of_the_result_is_added_up_once(tokens: int):
    product = shape(tokens)
    panels, rows, columns = product.part
    assert panels * rows * columns * product.pes == product.block * product.chunk
    assert product.steps * product.block * product.chunk == tokens * product.n
    assert len(product.panels) * product.width == product.chunk


def test_the_panels_of_a_weight_are_packed_in_the_order_of_their_use():
    product = shape(64)
    weight = np.arange(512 * 640).reshape(512, 640)
    flat = packed(weight, product)
    # PE 1 of cube 1: rows from 64 on, columns from 320 on; its first panel is row-major.
    first = flat[(8 + 1) * product.k * product.n :][: product.k * 32].reshape(product.k, 32)
    assert (first == weight[64:128, 320:352]).all()
    assert sorted(flat) == list(range(512 * 640))


@pytest.mark.parametrize(("depth", "tokens"), [(8192, 1), (28672, 1), (8192, 64), (28672, 64)])
def test_the_panels_of_a_layer_at_full_size_are_whole_tiles_and_divide_the_rows(
    depth: int, tokens: int
):
    product = Projection(tokens=tokens, depth=depth, columns=8192, out_width=1024, cubes=16, pes=8)
    rows = panel_rows(product, 64)
    assert rows % 64 == 0
    assert product.k % rows == 0
    # A PE loads EARLY panels of float16 ahead of the panel in use.
    panels_bytes = (EARLY + 1) * rows * product.width * 2
    assert product.operand_bytes + product.sums_bytes + panels_bytes <= SCRATCH_BYTES
