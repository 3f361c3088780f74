"""The kernels of send and receive on the mock runtime."""

import numpy as np
import pytest

from runtime.ccl import point_to_point
from runtime.core.coordinates import PeCoordinates
from runtime.language import mock
from runtime.language.mock import MockMemory, MockPe


@pytest.mark.parametrize("ahead", [0, 1, 2])
@pytest.mark.parametrize("numel", [0, 1, 15, 16, 17, 64, 300])
def test_a_receive_takes_the_slots_of_all_blocks_of_its_send(numel: int, ahead: int) -> None:
    memory = MockMemory()
    here, there = (MockPe(PeCoordinates(sip, 0, 0), (1, 1), memory=memory) for sip in (0, 1))
    # Slots of 16 elements, of which up to two are a block.
    mock.connect(here, "E", there, n_slots=2, slot_bytes=64)
    sent, received = np.arange(numel, dtype=np.float32), np.zeros(numel, np.float32)
    source, target = memory.map(sent, "sent"), memory.map(received, "received")
    mock.run(
        [
            (here, lambda: point_to_point.send(source, numel, "E", 16, 2, ahead)),
            (there, lambda: point_to_point.recv(target, numel, "W")),
        ]
    )
    assert (received == sent).all()
