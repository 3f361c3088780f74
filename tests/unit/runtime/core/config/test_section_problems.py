"""Every kind of annotation, and content that does not match it."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Meta

from runtime.core.config.section import Section
from runtime.core.config.section_problems import problems


class Part(Section, frozen=True):
    share: Annotated[float, Meta(ge=0, le=1)]
    even: Annotated[int, Meta(multiple_of=2)] = 0


class Whole(Section, frozen=True):
    kind: Literal["a", "b"]
    name: Annotated[str, Meta(min_length=1, pattern="^[a-z]*$")] = "x"
    parts: Annotated[tuple[Part, ...], Meta(min_length=1)] = (Part(1.0),)
    by_name: Mapping[str, Part] = {}
    point: tuple[float, float] = (0.0, 0.0)
    most: Annotated[int, Meta(ge=1, le=9)] | None = None


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ({}, [("kind", "this key is missing")]),
        ({"kind": "c"}, [("kind", "should be 'a' or 'b', got 'c'")]),
        ({"kind": "a", "name": ""}, [("name", "this name is empty")]),
        ({"kind": "a", "name": 3}, [("name", "should be a valid string, got 3")]),
        ({"kind": "a", "name": "A"}, [("name", "should match the pattern '^[a-z]*$', got 'A'")]),
        ({"kind": "a", "parts": ()}, [("parts", "this list is empty")]),
        ({"kind": "a", "parts": (3,)}, [("parts[0]", "should be a mapping of keys, got 3")]),
        ({"kind": "a", "by_name": 1}, [("by_name", "should be a mapping of keys, got 1")]),
        (
            {"kind": "a", "by_name": {"p": {"share": 2}}},
            [("by_name.p.share", "should be less than or equal to 1, got 2")],
        ),
        (
            {"kind": "a", "by_name": {"p": {"share": 1, "even": 3}}},
            [("by_name.p.even", "should be a multiple of 2, got 3")],
        ),
        ({"kind": "a", "point": (1,)}, [("point[1]", "this key is missing")]),
        (
            {"kind": "a", "point": (1, 2, 3)},
            [("point", "should have at most 2 items, got 3")],
        ),
        ({"kind": "a", "most": 0}, [("most", "should be greater than or equal to 1, got 0")]),
        ({"kind": "a", "most": None}, []),
        ({"kind": "a", "parts": ({"share": 10**400},)}, [("parts[0].share", None)]),
        (
            {"kin": "a"},
            [("kin", "unknown key; did you mean 'kind'?"), ("kind", "this key is missing")],
        ),
        (
            {"kind": "a", "parts": ({"share": 1, "most": 1},)},
            [("parts[0].most", "unknown key; 'most' is a key of the top level")],
        ),
    ],
)
def test_every_difference_has_its_key_path_and_its_rule(
    content: dict[str, Any], expected: list[tuple[str, str | None]]
) -> None:
    found = problems(content, Whole)
    assert [path for path, _ in found] == [path for path, _ in expected]
    for (_, problem), (_, wanted) in zip(found, expected, strict=True):
        assert wanted is None or problem == wanted


_VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 12),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from(["a", "b", "", "A"]),
    st.tuples(st.integers(0, 2), st.integers(0, 2)),
)
_PARTS = st.dictionaries(st.sampled_from(["share", "even"]), _VALUES)


@given(
    st.dictionaries(
        st.sampled_from(["kind", "name", "parts", "by_name", "point", "most"]),
        st.one_of(_VALUES, st.tuples(_PARTS), st.dictionaries(st.just("p"), _PARTS)),
    )
)
def test_content_without_problems_is_what_msgspec_accepts(content: dict[str, Any]) -> None:
    try:
        msgspec.convert(content, Whole)
        accepted = True
    except msgspec.ValidationError:
        accepted = False
    assert accepted == (not problems(content, Whole))
