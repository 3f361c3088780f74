"""Operators and reductions of tensors against numpy: shapes, placements, types, blocks of any
size.
"""

from collections.abc import Generator
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator.verify.check import verify
from runtime import DPPolicy, torch
from runtime.device.operations import elementwise_launch, reduction_launch
from runtime.device.regions.blocks import BlockLimits, blocks
from runtime.device.regions.regions import Region
from runtime.model.addresses import AddressMap
from runtime.model.topology import parse_topology
from tests.support.topologies import variant_text
from tests.support.world import simulate

# Two cubes of two PEs.
SMALL = variant_text(
    sip__cube_mesh={"w": 2, "h": 1},
    cube__pe_layout__pe_per_corner=1,
    cube__pe_layout__corners=["NW", "SE"],
)
PLACEMENTS = [
    None,
    DPPolicy(cube="row_wise", pe="row_wise"),
    DPPolicy(cube="replicate", pe="row_wise"),
    DPPolicy(num_cubes=1, num_pes=1),
]
DTYPES = [torch.float16, torch.bfloat16, torch.float32, torch.int8, torch.int32, torch.int64]


@pytest.fixture(scope="module", autouse=True)
def small_blocks() -> Generator[None]:
    """4 KiB of scratch are left for the values of a block, so that most operations have several."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (elementwise_launch, reduction_launch):
            patch.setattr(module, "_ALIGNMENT_BYTES", (1 << 20) - (4 << 10))
        yield


@dataclass(frozen=True)
class Operand:
    array: np.ndarray
    dp: DPPolicy | None
    dtype: torch.dtype

    def tensor(self) -> torch.Tensor:
        options = {} if self.dp is None else {"dp": self.dp}
        return torch.tensor(self.array, dtype=self.dtype, **options)


@st.composite
def operands(draw: st.DrawFn, shape: tuple[int, ...]) -> Operand:
    """A tensor which broadcasts to `shape`."""
    axes = draw(st.integers(0, len(shape)))
    own = tuple(1 if draw(st.booleans()) else n for n in shape[len(shape) - axes :])
    dtype = draw(st.sampled_from(DTYPES))
    seed = draw(st.integers(0, 99))
    # Integers: each sum, product and comparison of them is exact in every type but int8.
    array = np.random.default_rng(seed).integers(-9, 9, own).astype(dtype.numpy)
    divides = own and own[0] % 4 == 0
    return Operand(array, draw(st.sampled_from(PLACEMENTS if divides else [None])), dtype)


SHAPES = st.sampled_from([(), (7,), (600,), (8, 5), (4, 300), (4, 3, 70), (2, 1, 4, 33), (12, 1)])


@given(data=st.data())
@settings(max_examples=40, deadline=None)
def test_operators_are_those_of_numpy_for_every_shape_placement_and_type(data: st.DataObject):
    shape = data.draw(SHAPES)
    a, b = data.draw(operands(shape)), data.draw(operands(shape))

    def program(_rank: int) -> list[tuple[torch.dtype, np.ndarray]]:
        x, y = a.tensor(), b.tensor()
        results = [x + y, x - y, x * y, x == y, x < y, torch.maximum(x, y), x * 2]
        return [(each.dtype, each.numpy()) for each in results]

    world = simulate(program, 1, topology=SMALL, verify=True)
    left, right = a.array, b.array
    wide = [each.astype(np.float64) for each in (left, right)]
    expected: list[Any] = [
        wide[0] + wide[1],
        wide[0] - wide[1],
        wide[0] * wide[1],
        wide[0] == wide[1],
        wide[0] < wide[1],
        np.maximum(*wide),
        wide[0] * 2,
    ]
    for (dtype, result), exact in zip(world.returned[0], expected, strict=True):
        # Products of two numbers of one digit have two digits, which bfloat16 holds.
        np.testing.assert_array_equal(result, np.asarray(exact).astype(dtype.numpy))
    verdict = verify(
        world.records, world.written, world.contents, AddressMap(parse_topology(SMALL, "small"))
    )
    assert verdict.passed, verdict.problems


@given(data=st.data())
@settings(max_examples=30, deadline=None)
def test_reductions_are_those_of_numpy_along_every_axis(data: st.DataObject):
    shape = data.draw(SHAPES)
    seed, dtype = data.draw(st.integers(0, 99)), data.draw(st.sampled_from(DTYPES))
    array = np.random.default_rng(seed).integers(-3, 4, shape).astype(dtype.numpy)
    axes = st.lists(st.integers(0, max(len(shape) - 1, 0)), unique=True, min_size=1)
    dim = data.draw(st.none() | (axes if shape else st.none()))
    keep = data.draw(st.booleans())

    def program(_rank: int) -> list[tuple[torch.dtype, np.ndarray]]:
        x = torch.tensor(array, dtype=dtype)
        results = [
            x.sum(dim, keep),
            x.amax(dim, keep),
            x.amin(dim, keep),
            x.any(dim, keep),
            x.all(dim, keep),
        ]
        return [(each.dtype, each.numpy()) for each in results]

    world = simulate(program, 1, topology=SMALL)
    wide, axis = array.astype(np.float64), None if dim is None else tuple(dim)
    functions = (np.sum, np.max, np.min, np.any, np.all)
    for (result_type, result), function in zip(world.returned[0], functions, strict=True):
        exact = np.asarray(function(wide, axis=axis, keepdims=keep))
        np.testing.assert_array_equal(result, exact.astype(result_type.numpy), strict=True)


@given(
    lengths=st.lists(st.integers(1, 9), max_size=4),
    repeated=st.lists(st.booleans(), min_size=4, max_size=4),
    most=st.integers(1, 50),
)
def test_the_blocks_of_a_region_cover_each_element_once(
    lengths: list[int], repeated: list[bool], most: int
):
    count = prod(lengths)
    strides = np.cumprod([1, *reversed(lengths[1:])])[::-1] if lengths else []
    axes = tuple(
        (n, (int(s), 0 if again else int(s)))
        for n, s, again in zip(lengths, strides, repeated, strict=False)
    )
    elements = np.arange(count)
    seen: list[int] = []
    for block in blocks(Region((0, 0), axes), BlockLimits.in_turn(most)):
        assert prod(block.shape) <= most
        (down, across), _ = block.strides
        rows = block.starts[0] + np.arange(block.shape[0])[:, None] * down
        seen += (rows + np.arange(block.shape[1]) * across).reshape(-1).tolist()
    assert seen == elements.tolist()


@pytest.mark.parametrize("number", [0.1, 1 / 3, 1e-3])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_a_number_is_not_rounded_to_a_smaller_type_first(number: float, dtype: torch.dtype):
    array = np.linspace(-4, 4, 99).astype(dtype.numpy)

    def program(_rank: int) -> list[np.ndarray]:
        x = torch.tensor(array, dtype=dtype)
        return [(x * number).numpy(), (number - x).numpy()]

    product, difference = simulate(program, 1, topology=SMALL).returned[0]
    wide, scale = array.astype(np.float32), np.float32(number)
    np.testing.assert_array_equal(product, (wide * scale).astype(dtype.numpy))
    np.testing.assert_array_equal(difference, (scale - wide).astype(dtype.numpy))
