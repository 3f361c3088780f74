from importlib.util import find_spec
from pathlib import Path

import pytest

from runtime.core.compiled import choice
from runtime.core.compiled.choice import COMPILED, PYTHON, choose, is_fallback
from runtime.core.errors import UsageError

IS_BUILT = find_spec("runtime.core.compiled.build") is not None


def test_the_core_is_compiled_where_it_is_built() -> None:
    assert choose(None) == choose("") == (COMPILED if IS_BUILT else PYTHON)


def test_the_reference_is_a_fallback_unless_it_is_requested() -> None:
    assert is_fallback(PYTHON, None)
    assert is_fallback(PYTHON, "")
    assert not is_fallback(PYTHON, PYTHON)
    assert not is_fallback(COMPILED, None)


def test_the_reference_runs_on_request() -> None:
    assert choose(PYTHON) == PYTHON


def test_a_core_that_does_not_exist_is_refused() -> None:
    with pytest.raises(UsageError, match="KERNBENCH_CORE='pypy' is no core: use 'python', or"):
        choose("pypy")


def test_a_core_that_is_requested_and_not_built_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "find_spec", lambda name: None)
    with pytest.raises(UsageError, match=r"is not built\. To build it, run `make core`"):
        choose(COMPILED)
    assert choose(None) == PYTHON


@pytest.mark.skipif(not IS_BUILT, reason="the compiled core is not built")
def test_a_core_of_other_sources_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def changed(folder: Path, hexadecimal: object, paths: object) -> str:
        return "another digest"

    monkeypatch.setattr(choice, "digest", changed)
    with pytest.raises(UsageError, match=r"built from other sources .* run `make core`"):
        choose(None)
    assert choose(PYTHON) == PYTHON
