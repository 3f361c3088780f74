"""The routing file: what is read, and the line of each error."""

from pathlib import Path

import pytest

from kernbench.studies.moe_all_to_all.routing import read_routing
from runtime.core.errors import UsageError


def test_numbers_are_separated_by_spaces_or_commas_and_comments_are_ignored(tmp_path: Path):
    path = tmp_path / "routing.txt"
    path.write_text("# two experts each\n3 7\n\n0, 3  # the second token\n")
    assert read_routing(path, 8) == ((3, 7), (0, 3))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("0 1\n2 x", "line 2: 'x' is no expert; with --experts 8 they are 0 to 7"),
        ("0 8", "line 1: '8' is no expert"),
        ("0 -1", "line 1: '-1' is no expert"),
        ("0 1\n\n2", "line 3: 1 experts, the first token has 2"),
        ("3 3", "line 1: the experts of a token must differ"),
        ("# nothing\n", "there is no token, a line of experts for each"),
    ],
)
def test_an_invalid_file_is_refused_by_its_line(text: str, problem: str, tmp_path: Path):
    path = tmp_path / "routing.txt"
    path.write_text(text)
    with pytest.raises(UsageError) as raised:
        read_routing(path, 8)
    assert problem in str(raised.value)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path):
    with pytest.raises(UsageError, match=r"none\.txt cannot be read: No such file"):
        read_routing(tmp_path / "none.txt", 8)
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match="binary cannot be read: it is not text"):
        read_routing(tmp_path / "binary", 8)
