import pytest
from hypothesis import settings

# A deadline is a limit on wall time, and the machine may be busy.
settings.register_profile("kernbench", deadline=None)
settings.load_profile("kernbench")


def pytest_collection_modifyitems(items: list[pytest.Item]):
    """Of several workers one runs all tests that start processes: each of these needs the other cores itself."""
    for item in items:
        if item.get_closest_marker("multiproc"):
            item.add_marker(pytest.mark.xdist_group("processes"))
