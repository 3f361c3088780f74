"""The text of source lines: only of files that are still those of the run."""

from pathlib import Path

from msgspec.structs import replace

from kernbench.explain.advice.source_text import SourceText
from runtime.core.code.imported_code import CodeFile
from runtime.core.sha256 import sha256_hex
from tests.support.hand_made_runs import one_kernel
from tests.support.simulated_runs import of_tables


def text_of(file: Path, digest: str, line: str) -> str:
    records = of_tables([one_kernel()], 1000)
    run = replace(records.run, user_code={"k": CodeFile(str(file), digest)})
    object.__setattr__(records, "run", run)
    return SourceText(records).of(line)


def test_a_line_of_the_user_has_its_text_while_the_file_is_unchanged(tmp_path: Path):
    file = tmp_path / "k.py"
    file.write_text("def k(x):\n    tl.load(x, 4)\n")
    digest = sha256_hex(file.read_bytes())
    assert text_of(file, digest, "k.py:2") == "tl.load(x, 4)"
    assert text_of(file, digest, "k.py:9") == ""
    assert text_of(file, "0" * 64, "k.py:2") == ""


def test_a_line_of_kernbench_has_its_text():
    records = of_tables([one_kernel()], 1000)
    assert SourceText(records).of("runtime/language/tl.py:1").startswith('"""')
    assert SourceText(records).of("../outside.py:1") == ""
    assert SourceText(records).of("(queue)") == ""
