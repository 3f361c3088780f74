import signal
from pathlib import Path

import pytest
from hypothesis import settings

# A deadline is a limit on wall time, and the machine may be busy.
settings.register_profile("kernbench", deadline=None)
settings.load_profile("kernbench")


_EXTRA = ("cluster", "clusters", "torch", "triton")
LEFT_OUT = tuple(Path(__file__).parent / name for name in _EXTRA)


def pytest_configure():
    """Undo what a shell does to a command that it starts with `&`: it ignores Ctrl-C, and so would
    every program that a test starts and interrupts.
    """
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out tests that need extras, or root and minutes, unless their directory is named."""
    if collection_path not in LEFT_OUT:
        return None
    named = ((config.invocation_params.dir / each.partition("::")[0]) for each in config.args)
    return not any(path.resolve().is_relative_to(collection_path) for path in named)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]):
    """Leave out nightly tests, unless `-m` names them."""
    if "nightly" not in config.option.markexpr:
        nightly = [item for item in items if item.get_closest_marker("nightly")]
        config.hook.pytest_deselected(items=nightly)
        items[:] = [item for item in items if item not in nightly]
