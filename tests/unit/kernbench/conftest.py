from collections.abc import Iterator

import pytest

from tests.support.own_garbage import only_own_garbage


@pytest.fixture(autouse=True)
def _only_own_garbage() -> Iterator[None]:
    with only_own_garbage():
        yield
