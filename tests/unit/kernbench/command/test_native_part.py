from pathlib import Path

import pytest

from kernbench.command.native_part import imports_torch


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("import torch", True),
        ("import json, torch.distributed as dist", True),
        ("def main():\n    from torch.nn import functional", True),
        ("from kernbench import torch", False),
        ("import json\nimport numpy", False),
        ("from model import Model", True),
        ("import package.part", True),
        ("import plain", False),
        ("import torch as", False),
    ],
)
def test_a_program_imports_pytorch_itself_or_by_modules_beside_it(
    text: str, expected: bool, tmp_path: Path
):
    (tmp_path / "model.py").write_text("from plain import size\nimport torch\n", "utf-8")
    (tmp_path / "plain.py").write_text("import model_of_nobody\n", "utf-8")
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "part.py").write_text("import torch\n", "utf-8")
    program = tmp_path / "program.py"
    program.write_text(text, "utf-8")
    assert imports_torch(program) == expected


def test_modules_that_import_each_other_are_read_once(tmp_path: Path):
    program = tmp_path / "program.py"
    program.write_text("import other\n", "utf-8")
    (tmp_path / "other.py").write_text("import program\n", "utf-8")
    assert not imports_torch(program)
