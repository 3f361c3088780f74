"""The public interface under both names: `kernbench` and `runtime`."""

import pytest

import kernbench
import runtime


@pytest.mark.parametrize("name", ["DPPolicy", "bench", "mock", "tl", "torch", "tp"])
def test_runtime_has_the_public_names_of_kernbench(name: str) -> None:
    assert getattr(runtime, name) is getattr(kernbench, name)
    assert name in runtime.__all__
    assert name in kernbench.__all__


def test_a_public_name_that_does_not_exist_names_the_nearest() -> None:
    with pytest.raises(
        AttributeError, match=r"^module 'runtime' has no attribute 'torhc'; did you mean 'torch'\?$"
    ):
        runtime.torhc  # noqa: B018
