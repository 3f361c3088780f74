import pytest
from hypothesis import settings

# A deadline is a limit on wall time, and the machine may be busy.
settings.register_profile("kernbench", deadline=None)
settings.load_profile("kernbench")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]):
    """Leave out nightly tests, unless `-m` names them; keep tests of processes on one worker."""
    if "nightly" not in config.option.markexpr:
        nightly = [item for item in items if item.get_closest_marker("nightly")]
        config.hook.pytest_deselected(items=nightly)
        items[:] = [item for item in items if item not in nightly]
    for item in items:
        # A run of several processes uses the other cores itself.
        if item.get_closest_marker("multiproc"):
            item.add_marker(pytest.mark.xdist_group("processes"))
