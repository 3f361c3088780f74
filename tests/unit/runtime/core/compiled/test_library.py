from importlib.machinery import EXTENSION_SUFFIXES
from importlib.util import find_spec
from pathlib import Path

import pytest

from runtime.core.compiled.choice import IS_COMPILED
from runtime.core.compiled.library import LibraryFinder, path_entries
from runtime.core.compiled.sources import sources

ROOT = Path(__file__).parents[5]


@pytest.mark.skipif(not IS_COMPILED, reason="the compiled core is not built")
def test_all_modules_in_c_come_from_one_library() -> None:
    [library] = path_entries()
    paths = [path.relative_to(ROOT) for path in sources(ROOT) if path.suffix == ".pyx"]
    names = [".".join(path.with_suffix("").parts) for path in paths]
    assert {"runtime.core.compiled.build", "sip_node.kernel.calendar"} < set(names)
    assert {find_spec(name).origin for name in names} == {library}


def test_a_module_without_source_is_not_found() -> None:
    assert find_spec("sip_node.compiled.nothing") is None


def test_a_module_in_python_comes_from_its_own_file() -> None:
    assert find_spec("runtime.core.compiled.choice").origin == str(
        ROOT / "runtime/core/compiled/choice.py"
    )


def test_a_library_of_this_version_of_python_is_a_path_entry(tmp_path: Path) -> None:
    assert path_entries(tmp_path) == []
    (tmp_path / "twins.cpython-20-other.so").touch()
    assert path_entries(tmp_path) == []
    library = tmp_path / f"twins{EXTENSION_SUFFIXES[0]}"
    library.touch()
    assert path_entries(tmp_path) == [str(library)]


def test_an_entry_of_another_kind_is_left_to_other_finders() -> None:
    with pytest.raises(ImportError, match="is not the library of the compiled core"):
        LibraryFinder(str(ROOT))
