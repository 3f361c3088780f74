"""The rules of size, names and language, over everything that ships and over its tests."""

import re
from pathlib import Path

import pytest

from tests.dialect import PATHS, files, findings, phrases
from tests.support.assertions import without_assertion
from tests.support.source import comment_lines, duplicate_classes, modules_of, parsed

# On one worker, which parses each file once.
pytestmark = pytest.mark.xdist_group("style")

ROOT = Path(__file__).parents[2]
PACKAGES = ("runtime", "sip_node", "coordinator", "kernbench")
MODULES = modules_of(ROOT, (*PACKAGES, "examples", "tests"))
CYTHON = [
    path
    for package in PACKAGES
    for suffix in ("pxd", "pyi", "pyx")
    for path in (ROOT / package).rglob(f"*.{suffix}")
]
NO_SUBJECT = re.compile(
    r"(?:Of|In|At|By|For|From|To|With|Without|On|Into|As|Between|Under|Through|Until|Since|Per"
    r"|Among|Inside|Outside|What|Which|How|Where|When|Who|That|This|These|Those|Its?|They|Their)\b"
)
PAGES = [*ROOT.glob("*.md"), *sorted((ROOT / "docs").rglob("*.md"))]
MAX_MODULE_LINES = 400
MAX_FUNCTION_LINES = 60
MAX_COLUMNS = 100
INSTRUCTION = re.compile(r"\s+# (?:noqa|pyright|type|pragma): .*")

NOT_OF_ONE_MODULE = {
    "test_style": "reads all packages",
    "test_pages": "reads all pages",
    "test_tree": "reads all files of the checkout",
    "test_rooms": "reads all folders of the packages",
    "test_timing_keys": "reads all of `kernbench`",
    "test_traffic": "the bytes which all algorithms send",
    "test_absent_names": "the names of the package `runtime.torch`",
    "test_public_names": "the names of the package `runtime.torch`",
    "test_protocol_page": "docs/internals/protocol.md against the messages of `runtime.wire`",
}
"""Modules in `tests/unit` that have not the name of the module which they test, and why."""


def sizes(path: Path) -> list[str]:
    """Findings of length in a module: itself, or a function."""
    source, name = path.read_text(encoding="utf-8"), path.relative_to(ROOT)
    length = len(source.splitlines())
    module = [f"{name}: {length} lines"] if length > MAX_MODULE_LINES else []
    return module + [f"{name}: {function}" for function in long_functions(source)]


def long_functions(source: str) -> list[str]:
    """The functions of `source` that are longer than the limit."""
    return [
        f"{function.name} at line {function.line}: {function.lines} lines"
        for function in parsed(source).functions
        if function.lines > MAX_FUNCTION_LINES
    ]


def long_lines(text: str, *, is_page: bool = False) -> list[int]:
    """The numbers of lines that are too long.

    Tables, images and fenced blocks of a page cannot break; of code, instructions to tools do not
    count, as for ruff.
    """
    lines, fenced = list[int](), False
    for number, line in enumerate(text.splitlines(), start=1):
        fenced ^= is_page and line.lstrip().startswith("```")
        unbreakable = is_page and (fenced or line.startswith(("|", "!")))
        shown = line if is_page else INSTRUCTION.sub("", line)
        if len(shown) > MAX_COLUMNS and not unbreakable:
            lines.append(number)
    return lines


def module_of(test: Path) -> Path | None:
    """The module of `test`, a path below `tests/unit`: `test_x.py` and `test_x_aspect.py` test `x`.

    A package may stand for the module as well.
    """
    package, words = ROOT / test.parent, test.stem.split("_")[1:]
    names = ["_".join(words[: count + 1]) for count in range(len(words))]
    paths = [package / f"{name}{suffix}" for name in names for suffix in (".py", ".pyx")]
    packages = [package / "__init__.py"] if package.name in names else []
    return next((path for path in [*paths, *packages] if path.exists()), None)


def test_a_module_has_one_idea_and_its_functions_fit_on_a_page():
    assert [finding for path in MODULES for finding in sizes(path)] == []


def test_a_module_of_the_compiled_core_has_one_idea():
    lengths = {
        str(path.relative_to(ROOT)): len(path.read_text("utf-8").splitlines()) for path in CYTHON
    }
    assert {name: lines for name, lines in lengths.items() if lines > MAX_MODULE_LINES} == {}


def test_lines_have_at_most_100_columns():
    found = {
        str(path.relative_to(ROOT)): numbers
        for path in [*MODULES, *CYTHON, *PAGES]
        if (numbers := long_lines(path.read_text("utf-8"), is_page=path.suffix == ".md"))
    }
    assert found == {}


def without_subject(source: str) -> list[int]:
    """The lines of docstrings that begin with a preposition or a pro-form."""
    return [line for line, text in parsed(source).docstrings if NO_SUBJECT.match(text.lstrip())]


def test_docstrings_begin_with_their_subject():
    lines = {str(path): without_subject(path.read_text("utf-8")) for path in MODULES}
    assert {path: numbers for path, numbers in lines.items() if numbers} == {}


def test_a_docstring_with_a_preposition_in_front_has_no_subject():
    source = 'def rows():\n    """Of the operands."""\n\ndef cells():\n    """Operands."""\n'
    assert without_subject(source) == [2]


def test_the_formatter_formats_everything():
    without = re.compile(r"# fmt: (?:off|skip)$", re.MULTILINE)
    assert [path for path in MODULES if without.search(path.read_text("utf-8"))] == []


def test_a_name_stands_for_one_class():
    assert duplicate_classes(modules_of(ROOT, PACKAGES)) == {}


def test_prose_is_plain_technical_english():
    paths = [ROOT / name for name in PATHS]
    assert [finding for path in files(paths) for finding in findings(path)] == []


def test_unit_tests_mirror_the_source():
    unit = ROOT / "tests" / "unit"
    tests = [path.relative_to(unit) for path in sorted(unit.rglob("test_*.py"))]
    of_modules = [test for test in tests if test.stem not in NOT_OF_ONE_MODULE]
    assert [test for test in of_modules if not module_of(test)] == []


def test_every_test_reaches_an_assertion():
    modules = [path for path in modules_of(ROOT, ["tests"]) if path.stem.startswith("test_")]
    assert without_assertion(modules, modules_of(ROOT, ["tests/support", "examples"])) == []


class TestTheMeasures:
    def test_a_long_function_is_seen(self):
        body = "    pass\n" * MAX_FUNCTION_LINES
        assert long_functions(f"def f():\n{body}") == ["f at line 1: 61 lines"]

    def test_a_long_line_is_seen_outside_of_tables_and_fenced_blocks(self):
        line = "x" * 101
        assert long_lines(f"x = 1  # noqa: E501 - {line}\n{line}\n") == [2]
        page = f"{line}\n|{line}\n```\n{line}\n```\n{line}\n"
        assert long_lines(page, is_page=True) == [1, 6]
        assert long_lines(page) == [1, 2, 4, 6]

    def test_the_module_of_a_test_is_named_by_its_first_words(self):
        deadlock = ROOT / "runtime" / "diagnosis" / "deadlock.py"
        assert module_of(Path("runtime/diagnosis/test_deadlock_aspect.py")) == deadlock
        assert module_of(Path("runtime/diagnosis/test_life.py")) is None

    def test_classes_of_one_name_are_seen_in_spite_of_underscores(self, tmp_path: Path):
        first, second = tmp_path / "a.py", tmp_path / "b.py"
        first.write_text("class Row: ...\nclass Other: ...\n")
        second.write_text("def f():\n    class _Row: ...\n")
        assert duplicate_classes([first, second]) == {"Row": [first, second]}

    def test_comments_are_counted_and_instructions_to_tools_are_not(self):
        assert comment_lines("x = 1  # why\n# because\ny = 2  # noqa: E501\n'# no'\n") == 2

    def test_phrases_are_found_across_lines_and_not_in_code(self):
        text = "A machine tells\n`it says`, so\nmany `a\nb`: nobody"
        assert list(phrases(text)) == [(0, "tells"), (1, "so many"), (3, "nobody")]

    def test_prose_of_python_is_comments_strings_and_names_of_tests(self, tmp_path: Path):
        module = tmp_path / "m.py"
        module.write_text(
            "told = 1  # whoever\n# reads so\n# many\n"
            "x = f'{told} asks us'\ndef test_it_says(): ...\n"
        )
        assert [finding.removeprefix(f"{module}:") for finding in findings(module)] == [
            "1: whoever",
            "2: so many",
            "4: asks",
            "5: says",
        ]

    @pytest.mark.parametrize(
        "text", ["# reads so\n    # much\n", "def test_it_says(): ...\n", "x = 'it says so'\n"]
    )
    def test_a_phrase_alone_in_a_file_is_seen(self, text: str, tmp_path: Path):
        module = tmp_path / "m.py"
        module.write_text(text)
        assert len(findings(module)) == 1

    def test_a_test_reaches_an_assertion_through_functions_of_the_tests(self, tmp_path: Path):
        support, module = tmp_path / "support.py", tmp_path / "test_m.py"
        support.write_text("def check(x):\n    return inner(x)\ndef inner(x):\n    assert x\n")
        module.write_text(
            "def test_a():\n    check(1)\n"
            "def test_b():\n    run(1)\n"
            "def test_c():\n    np.testing.assert_equal(1, 1)\n"
        )
        assert without_assertion([module], [support]) == [f"{module}::test_b"]
