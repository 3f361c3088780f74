"""Models for images train on the device: losses and gradients of a CPU, and hardly any operator on
the host.
"""

import pytest

from tests.torch.conftest import Runs

pytestmark = [pytest.mark.slow, pytest.mark.multiproc, pytest.mark.timeout(600)]

MOST_ON_HOST = 5
"""Percent of the simulated time."""
NEAR = 1e-5


@pytest.mark.parametrize("name", ["digits", "resnet18", "unet", "mobilenet"])
def test_a_model_for_images_trains_on_the_device_with_the_numbers_of_a_cpu(name: str, run: Runs):
    output = run("vision_models.py", "--no-trace", program_arguments=[name])
    (line,) = (each for each in output.splitlines() if each.startswith(f"= {name} | "))
    of_losses, of_gradients, _, share, *_ = line.split(" | ")[1:]
    assert max(float(of_losses), float(of_gradients)) <= NEAR, line
    assert float(share) <= MOST_ON_HOST, line
