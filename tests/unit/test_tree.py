"""What the checkout holds: sources, text and pictures, and nothing that a build makes."""

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PICTURES = (".png", ".gif")


def tracked_files() -> list[Path]:
    """The files of the checkout, as git lists them."""
    git = shutil.which("git")
    if git is None or not (ROOT / ".git").exists():
        pytest.skip("the tree is no git checkout")
    listed = subprocess.run([git, "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True)
    paths = [ROOT / name for name in listed.stdout.decode().split("\0") if name]
    # A file which the working tree has deleted is still listed until the deletion is staged.
    return [path for path in paths if path.is_file()]


def is_binary(content: bytes) -> bool:
    """Text has no zero byte; libraries, objects, bytecode and archives have one early."""
    return b"\0" in content[:8192]


def test_the_checkout_holds_no_binaries():
    found = [
        str(path.relative_to(ROOT))
        for path in tracked_files()
        if path.suffix not in PICTURES and is_binary(path.read_bytes())
    ]
    assert found == []


def test_a_shared_library_counts_as_a_binary():
    library = next(ROOT.glob("runtime/core/compiled/*.so"), None)
    # An ELF header ends with zeros, if the core is not built here.
    content = library.read_bytes() if library else b"\x7fELF\x02\x01\x01" + b"\0" * 57
    assert is_binary(content)
