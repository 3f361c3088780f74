"""The server in C against the reference where 64 bits are not enough."""

import pytest

from runtime.core.compiled.choice import IS_COMPILED
from sip_node.chip.fabric.server import ReferenceServer

if not IS_COMPILED:
    pytest.skip("the compiled core does not run", allow_module_level=True)

from sip_node.compiled.server import FifoServer


@pytest.mark.parametrize("gbs", [1, 204.8, 12.345678901234567, 0.30000000000000004, 1e-25, 1e25])
@pytest.mark.parametrize("nbytes", [0, 1, 255, 999_999_937])
def test_durations_are_exact_for_any_bandwidth(gbs: float, nbytes: int) -> None:
    exact_ps = ReferenceServer("reference", gbs).serialisation_ps(nbytes)
    server = FifoServer("twin", gbs)
    if exact_ps < 1 << 62:
        assert server.serialisation_ps(nbytes) == exact_ps
    else:
        with pytest.raises(OverflowError):
            server.serialisation_ps(nbytes)


def test_a_duration_is_computed_again_after_another_size() -> None:
    server = FifoServer("twin", 3)
    assert [server.serialisation_ps(size) for size in (1, 2, 1, 1, 3)] == [334, 667, 334, 334, 1000]


def test_a_wait_beyond_64_bits_is_an_error_and_not_a_wrong_sum() -> None:
    server = FifoServer("twin", 1e-6)
    server.free_ps = server.queued_ps = 3 << 60
    with pytest.raises(OverflowError, match="twin: its messages have waited longer"):
        server.reserve(0, 0, 1)


def test_counters_are_readable_and_writable_as_in_the_reference() -> None:
    server = FifoServer("twin", 1)
    server.free_ps += 10
    assert server.reserve(0, 0, 1) == (10, 1010)
    assert (server.busy_ps, server.queued_ps, server.nbytes) == (1000, 10, 1)
    assert server.byte_ps == ReferenceServer("reference", 1).byte_ps
