"""The commands of README and docs print what the pages show."""

from pathlib import Path

import pytest

from tests.support.transcripts import (
    PAGES,
    ROOT,
    Block,
    Step,
    Transcript,
    blocks_of,
    copy_of_the_checkout,
    difference,
    output_of,
    run_here,
    without_configuration,
)

# On one worker: a command of several pages runs once.
pytestmark = pytest.mark.xdist_group("transcripts")

BLOCKS = [
    block
    for page in PAGES
    for block in blocks_of(str(page.relative_to(ROOT)), page.read_text(encoding="utf-8"))
]


def _parameter(block: Block) -> object:
    marks = []
    if block.not_run:
        marks.append(pytest.mark.skip(reason=block.not_run))
    if block.is_nightly:
        marks.append(pytest.mark.nightly)
    # With the line: two blocks of a page may begin with one command.
    return pytest.param(block, id=f"{block} (line {block.line})", marks=marks)


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copy_of_the_checkout(tmp_path_factory.mktemp("checkout"))


@pytest.fixture(scope="module")
def transcript(checkout: Path) -> Transcript:
    """Plain commands run in this process; those of `make test-nightly` are typed into a shell."""
    return Transcript(checkout, run_here)


@pytest.fixture(scope="module")
def typed(checkout: Path) -> Transcript:
    return Transcript(checkout)


@pytest.mark.slow
@pytest.mark.multiproc
@pytest.mark.golden
@pytest.mark.timeout(600)
@pytest.mark.parametrize("block", [_parameter(block) for block in BLOCKS])
def test_a_page_shows_what_its_commands_print(
    block: Block, transcript: Transcript, typed: Transcript
):
    transcript = typed if block.is_nightly else transcript
    for step, ended in transcript.endings(block):
        assert ended.returncode == 0 or step.shown, ended.stderr
        assert "Traceback" not in ended.stderr
        differs = difference(step, output_of(ended))
        assert not differs, f"{block.page}:{block.line}: {differs}\n{output_of(ended)}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_hides_the_hash_of_the_configuration_which_every_new_key_changes(page: Path):
    text = page.read_text(encoding="utf-8")
    assert text == without_configuration(text)


def test_commands_are_those_lines_of_a_fenced_block_that_start_with_a_dollar():
    page = "```\n$ a\nx\ny\n$ b \\\n  c\n```\ntext\n```python\nx = 1\n```\n    $ no\n"
    [block] = blocks_of("page.md", page)
    assert (block.line, block.not_run) == (2, "")
    assert block.steps == (Step("a", ("x", "y")), Step("b \\\n  c", ()))
    assert [step.at for step in block.steps] == [3, 7]


def test_a_block_that_is_not_run_has_its_reason_in_the_page():
    first, second = blocks_of(
        "page.md", "<!-- not run: needs a browser -->\n```\n$ a > f\n```\n\n```\n$ b\n```\n"
    )
    assert (first.not_run, second.not_run) == ("needs a browser", "")
    assert second.before == ()


def test_a_command_of_several_pages_runs_once_unless_it_reads_another_file(tmp_path: Path):
    transcript = Transcript(tmp_path)
    command = "cat given; echo run >> runs; wc -l < runs"
    first = transcript.of(command, ("echo 1 > given",))
    again = transcript.of(command, ("echo 7 > unused", "echo 1 > given"))
    other = transcript.of(command, ("echo 2 > given",))
    assert [each.stdout.split() for each in (first, again, other)] == [
        ["1", "1"],
        ["1", "1"],
        ["2", "2"],
    ]


def test_a_block_begins_with_the_files_that_blocks_before_it_have_written():
    first, second = blocks_of("page.md", "```\n$ cat a > b\n$ python c\n```\n```\n$ python d\n```")
    assert (first.before, second.before) == ((), ("cat a > b",))


@pytest.mark.parametrize(
    ("shown", "printed"),
    [
        ("time 5.000 ns", "time 5.000 ns\n"),
        ("wall time       1.383 s, after 1.068 s to start", "wall time       2.1 s\n"),
        (
            "sync  513 rounds, 340 messages, 9 null messages",
            "sync  1 rounds, 102 messages, 7 null messages\n",
        ),
        ("files           runs/0001-scale", "files           runs/0412-scale\n"),
        ("a\n…\nb", "a\nanything\nat all\nb\n"),
        ("a … b", "a thing b\n"),
        ("rank 1: x\nrank 0: y\nend", "rank 0: y\nrank 1: x\nend\n"),
    ],
)
def test_values_that_depend_on_the_machine_may_differ(shown: str, printed: str):
    assert difference(Step("command", tuple(shown.splitlines())), printed) == ""


@pytest.mark.parametrize(
    ("shown", "printed", "problem"),
    [
        ("time 5.000 ns", "time 5.001 ns\n", "not printed: 'time 5.000 ns'"),
        ("sync 340 packets", "sync 341 packets\n", "not printed: 'sync 340 packets'"),
        ("a\nb", "a\nc\nb\n", "other lines are printed between these"),
        ("a", "a\nb\n", "other lines are printed between these"),
        ("rank 0: x", "rank 0: y\n", "not printed: 'rank 0: x'"),
    ],
)
def test_simulated_values_may_not_differ(shown: str, printed: str, problem: str):
    assert difference(Step("command", tuple(shown.splitlines())), printed) == problem


def test_figures_in_the_comment_of_a_command_are_printed():
    step = Step("python launch.py   # 1,842.5 ns", ())
    assert difference(step, "time 1,842.5 ns") == ""
    assert difference(step, "time 1,842.6 ns") == "not printed: 1,842.5"
