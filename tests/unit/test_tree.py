"""What the checkout holds: sources, text and pictures, and nothing that a build makes."""

from pathlib import Path

from tests.support.source import tracked_files

ROOT = Path(__file__).parents[2]
PICTURES = (".png", ".gif")


def is_binary(content: bytes) -> bool:
    """Text has no zero byte; libraries, objects, bytecode and archives have one early."""
    return b"\0" in content[:8192]


def test_the_checkout_holds_no_binaries():
    found = [
        str(path.relative_to(ROOT))
        for path in tracked_files(ROOT)
        if path.suffix not in PICTURES and is_binary(path.read_bytes())
    ]
    assert found == []


def test_a_shared_library_counts_as_a_binary():
    library = next(ROOT.glob("runtime/core/compiled/*.so"), None)
    # An ELF header ends with zeros, if the core is not built here.
    content = library.read_bytes() if library else b"\x7fELF\x02\x01\x01" + b"\0" * 57
    assert is_binary(content)
