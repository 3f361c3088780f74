"""`make transcripts` replaces in a page what its commands print otherwise, and nothing else."""

from pathlib import Path

import pytest

from tests.renew_transcripts import renew, renewed_lines
from tests.support.transcripts import Step, Transcript, difference


@pytest.mark.parametrize(
    ("shown", "printed", "renewed"),
    [
        ("a\nb 1\nc", "a\nb 2\nc\n", "a\nb 2\nc"),
        ("a\nc", "a\nb\nc\n", "a\nb\nc"),
        ("a\nsomething else\nc", "a\nc\n", "a\nc"),
        # Lines and parts of lines that stand for any text.
        ("…\nb 1\n…", "x\ny\nb 2\nz\n", "…\nb 2\n…"),
        ("busy 57.7 %, …", "busy 12.3 %, idle 9 %\n", "busy 12.3 %, …"),
        ("in …/demo/a.py: 1", "in /tmp/demo/a.py: 2\n", "in …/demo/a.py: 2"),
        # Values that depend on the machine stay, unless the rest of their line has changed.
        ("wall time 1.2 s\ntime 5", "wall time 3.4 s\ntime 6\n", "wall time 1.2 s\ntime 6"),
        ("files runs/0001-a\nb", "files runs/0712-a\nc\n", "files runs/0001-a\nc"),
        # The hash of the configuration is hidden.
        ("# config 4555c249a1fa\n1", "# config 0123456789ab\n2\n", "# config …\n2"),
        ("# config …\n1", "# config 0123456789ab\n2\n", "# config …\n2"),
        # Ranks print in any order.
        ("rank 1: x\nrank 0: y", "rank 0: z\nrank 1: x\n", "rank 0: z\nrank 1: x"),
    ],
)
def test_only_what_has_changed_is_replaced(shown: str, printed: str, renewed: str):
    lines = renewed_lines(shown.splitlines(), printed)
    assert lines == tuple(renewed.splitlines())
    assert difference(Step("command", lines), printed) == ""


def test_a_row_of_a_table_is_replaced_by_the_row_with_its_label():
    shown = ["…", "   256  64  0.983", "  2048 512  1.314", "…"]
    printed = "head\n   256  64  1.983\n  2048 512  1.777\n 16384 4096  3.482\nend\n"
    assert renewed_lines(shown, printed) == (
        "…",
        "   256  64  1.983",
        "  2048 512  1.777",
        "…",
    )


PAGE = """Text.

```
$ echo one; echo two
one
2
$ echo \\
  three
four
five
```

<!-- not run: the reason -->
```
$ echo a
b
```

```
$ echo config 0123456789ab > f   # a comment
$ echo now; cat f
now
config 0123456789ab
```
"""


def test_a_page_keeps_everything_besides_the_lines_that_have_changed(tmp_path: Path):
    page = tmp_path / "page.md"
    page.write_text(PAGE, encoding="utf-8")
    assert list(renew(page, Transcript(tmp_path), nightly=False)) == []
    renewed = PAGE.replace("one\n2\n", "one\ntwo\n").replace("four\nfive\n", "three\n")
    renewed = renewed.replace("now\nconfig 0123456789ab", "now\nconfig …")
    assert page.read_text(encoding="utf-8") == renewed
    assert list(renew(page, Transcript(tmp_path), nightly=False)) == []
    assert page.read_text(encoding="utf-8") == renewed


@pytest.mark.parametrize(
    ("command", "shown", "problem"),
    [
        ("echo useless >&2; false", "good\n", "fails: useless"),
        ("python -c '1 / 0'", "", "fails: ZeroDivisionError: division by zero"),
        ("echo 2.5 # 1.5", "", "not printed: 1.5"),
    ],
)
def test_a_command_that_fails_leaves_its_page_and_is_named(
    command: str, shown: str, problem: str, tmp_path: Path
):
    page = tmp_path / "page.md"
    page.write_text(f"```\n$ {command}\n{shown}```\n", encoding="utf-8")
    [found] = renew(page, Transcript(tmp_path), nightly=False)
    assert found.startswith("page.md:3: ")
    assert problem in found
    assert page.read_text(encoding="utf-8") == f"```\n$ {command}\n{shown}```\n"
