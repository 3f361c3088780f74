"""Functions of users: which of them depend on their arguments alone."""

import math
from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pytest

from runtime import tl
from sip_node.programs.lists.not_listed import NotListed
from sip_node.programs.lists.plain_code import captured

SCALE, SEEN, COUNTS = 2.0, list[object](), {"calls": 0}


def loads(x: Any, count: int) -> None:
    for index in range(count):
        with tl.scratch():
            values = tl.load(x + index, (2, 3))
            parts = [values[:1], values[1:]]
            parts.append(tl.exp(values * SCALE))
            tl.store(x, parts[-1].mT.reshape(6))


def helped(x: Any) -> None:
    loads(x, max(1, math.ceil(SCALE)))
    tl.load(x, sum(each for each in (1, 2)))


def with_cells(x: Any) -> None:
    offset = 0

    def moved() -> tl.Pointer:
        return x + offset

    offset = 2
    tl.load(moved(), 1)


def test_a_function_of_its_arguments_names_the_globals_that_it_reads() -> None:
    assert dict(captured(cast("Any", loads))) == {"SCALE": SCALE}
    assert dict(captured(cast("Any", helped))) == {"loads": loads, "SCALE": SCALE}
    assert dict(captured(cast("Any", with_cells))) == {}


def counter() -> Callable[[Any], None]:
    calls = 0

    def kernel(x: Any) -> None:
        nonlocal calls
        calls += 1

    return kernel


def unset() -> Callable[[Any], None]:
    def kernel(x: Any) -> None:
        tl.load(x, later)

    if COUNTS["calls"] < 0:
        later = 1
    return kernel


def sets_global(x: Any) -> None:
    global SCALE  # noqa: PLW0603 - what is refused
    SCALE = 3.0


def sets_attribute(x: Any) -> None:
    loads.calls = 1  # type: ignore[attr-defined]


def catches(x: Any) -> None:
    try:
        tl.load(x, 1)
    except ValueError:
        tl.load(x, 2)


def ends_in_any_case(x: Any) -> None:
    try:
        tl.load(x, 1)
    finally:
        tl.load(x, 2)


def imports(x: Any) -> None:
    import random

    tl.load(x, random.randrange(3))


def computes_with_numpy(x: Any) -> None:
    tl.load(x, int(np.random.default_rng().integers(3)))


def reads_address(x: Any) -> None:
    tl.load(x, x.address % 7)


def reads_elements(x: Any) -> None:
    tl.load(x, 1 if tl.load(x, 1).data is None else 2)


def reads_hidden(x: Any) -> None:
    tl.load.__defaults__  # noqa: B018 - what is refused


def by_another_way(x: Any) -> None:
    tl.np.random.seed(1)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("kernel", "reason"),
    [
        (counter(), "may change what others see"),
        (unset(), "uses later before it is set"),
        (sets_global, "may change what others see"),
        (sets_attribute, "may change what others see"),
        (catches, "catches exceptions"),
        (ends_in_any_case, "catches exceptions"),
        (imports, "may change what others see"),
        (computes_with_numpy, "uses module numpy"),
        (reads_address, "uses address"),
        (reads_elements, "uses data"),
        (reads_hidden, "uses __defaults__"),
    ],
    ids=range(11),
)
def test_a_function_that_depends_on_more_or_does_more_is_refused(kernel: Any, reason: str) -> None:
    with pytest.raises(NotListed, match=reason):
        list(captured(kernel))


def prints(x: Any) -> None:
    print(x)


def appends(x: Any) -> None:
    SEEN.append(x)


def test_other_globals_are_passed_on_and_have_no_key() -> None:
    assert dict(captured(cast("Any", prints))) == {"print": print}
    assert dict(captured(cast("Any", appends))) == {"SEEN": SEEN}


def test_a_module_behind_the_language_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tl, "np", np, raising=False)
    with pytest.raises(NotListed, match="uses np"):
        list(captured(cast("Any", by_another_way)))
