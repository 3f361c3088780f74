"""Bounds of indices, which a kernel checks, and the indices of a run without data."""

from collections.abc import Iterator
from typing import Any, cast

import numpy as np
import pytest

from runtime.core.dtypes import int64
from runtime.device.kernels.bounds import HostIndices, IndexBounds
from runtime.language.running import current_pe
from runtime.language.value import Value


class Running:
    """A kernel that reads the elements of its values."""

    def elements_of(self, value: Value) -> Any:
        return value.data


@pytest.fixture(autouse=True)
def kernel() -> Iterator[None]:
    token = current_pe.set(cast("Any", Running()))
    yield
    current_pe.reset(token)


BOUNDS = IndexBounds(5, "a table", first=-5, other=100)


def indices(*numbers: int, has_data: bool = True) -> Value:
    return Value((len(numbers),), int64, np.array(numbers) if has_data else None)


@pytest.mark.parametrize("wrong", [5, -6, 99])
def test_an_index_out_of_bounds_is_an_error_that_names_both(wrong: int):
    with pytest.raises(IndexError, match=rf"index {wrong} is out of bounds for a table"):
        BOUNDS.check(indices(-5, 4, 100, wrong, 7))


def test_a_reported_index_out_of_bounds_is_0_for_the_kernel():
    errors: list[IndexError] = []
    loaded = indices(-5, 4, 100, 5, 7)
    BOUNDS._replace(report=errors.append).check(loaded)
    assert [str(each) for each in errors] == ["index 5 is out of bounds for a table"]
    assert loaded.data is not None
    assert loaded.data.tolist() == [-5, 4, 100, 0, 0]
    assert loaded.data.dtype == np.int64


def test_an_index_of_an_empty_table_is_an_error_of_the_kernel():
    with pytest.raises(IndexError, match="index 0 is out of bounds"):
        IndexBounds(0, "no rows", report=list[IndexError]().append).check(indices(0))


def test_indices_within_bounds_and_those_without_elements_pass():
    BOUNDS.check(indices(-5, 0, 4, 100))
    unknown = indices(7, has_data=False)
    BOUNDS.check(unknown)
    assert unknown.data is None


def test_indices_of_a_run_without_data_are_those_of_the_host_and_are_checked():
    bounds = BOUNDS._replace(known=HostIndices(lambda: np.array([0, 1, 2, 3, 9])))
    loaded = indices(0, 0, has_data=False)
    bounds.check(loaded, 2)
    assert loaded.data is not None
    assert loaded.data.tolist() == [2, 3]
    with pytest.raises(IndexError, match="index 9 "):
        bounds.check(indices(0, 0, has_data=False), 3)


def test_indices_of_a_run_with_data_stay_those_of_the_memory():
    bounds = BOUNDS._replace(known=HostIndices(lambda: np.array([1])))
    loaded = indices(3)
    bounds.check(loaded)
    assert loaded.data is not None
    assert loaded.data.tolist() == [3]
