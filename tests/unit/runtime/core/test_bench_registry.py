"""The decorators of benches and studies: which parameters are flags, and what is refused."""

import pytest

from runtime.core import bench_registry
from runtime.core.bench_registry import Bench, Flag, bench, registered, study


@pytest.fixture(autouse=True)
def _own_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench_registry, "_REGISTRY", {})


def test_keyword_only_parameters_are_flags_with_type_default_and_help():
    @bench("second", "what it does", size="elements", name="a text")
    def function(rank: int, *, size: int = 3, name: str = "") -> None:
        pass

    @study("first", "what it does")
    def other(options: object, *, fast: bool = False) -> bool:
        return fast

    first, second = registered()
    assert isinstance(second, Bench)
    assert second.flags == (Flag("size", int, 3, "elements"), Flag("name", str, "", "a text"))
    assert second.program.startswith(f"{__name__}:")
    assert (first.name, first.flags) == ("first", (Flag("fast", bool, False, ""),))


def without_default(rank: int, *, size: int) -> None:
    pass


def without_type(rank: int, *, size=3) -> None:
    pass


def of_another_type(rank: int, *, size: tuple[int, ...] = ()) -> None:
    pass


@pytest.mark.parametrize(
    ("function", "problem"),
    [
        (without_default, "without_default: parameter 'size' is a flag, so it needs a default"),
        (without_type, "without_type: parameter 'size' is a flag, so its type must be bool"),
        (of_another_type, "of_another_type: parameter 'size' is a flag, so its type must be bool"),
    ],
)
def test_a_parameter_that_cannot_be_a_flag_is_refused(function, problem: str):
    with pytest.raises(TypeError, match=problem):
        bench("name", "what it does")(function)


def test_a_help_text_for_no_parameter_is_refused():
    def function(rank: int, *, size: int = 3) -> None:
        pass

    with pytest.raises(TypeError, match="function has no keyword-only parameter 'sise'"):
        bench("name", "what it does", sise="elements")(function)
