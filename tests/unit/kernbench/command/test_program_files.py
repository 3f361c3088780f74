from pathlib import Path

import pytest

from coordinator.plan import ProgramSpec
from kernbench.command.program_files import program_file, read_program


def test_a_program_is_read_with_the_modules_beside_it(tmp_path: Path):
    files = {
        "program.py": "import near, numpy\nfrom package import part\n",
        "near.py": "import program\nimport json\n",
        "package/__init__.py": "",
        "package/part.py": "import far\n",
        "unused.py": "import other\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    found = read_program(tmp_path / "program.py")
    assert found.files == {tmp_path / name for name in files if name != "unused.py"}
    assert found.outside == {"numpy", "json", "far"}


def test_a_program_that_does_not_exist_names_nothing(tmp_path: Path):
    found = read_program(tmp_path / "missing.py")
    assert found == (frozenset([tmp_path / "missing.py"]), frozenset())


@pytest.mark.parametrize(
    ("program", "file"),
    [
        (ProgramSpec("script", "s.py", "/x/s.py"), "/x/s.py"),
        (ProgramSpec("bench", "own", "/x/bench.py:own"), "/x/bench.py"),
        (ProgramSpec("bench", "a", "kernbench.benches.a:a"), None),
        (ProgramSpec("module", "no.such", "no.such"), None),
    ],
)
def test_the_file_of_a_program(program: ProgramSpec, file: str | None):
    assert program_file(program) == (file and Path(file))
