"""Models of Hugging Face train and generate on the device as on a CPU, without the host.

They are skipped where transformers is not installed, which nothing else needs.
"""

import re

import pytest

from tests.torch.conftest import Runs

pytestmark = [pytest.mark.nightly, pytest.mark.multiproc, pytest.mark.timeout(900)]


def test_models_of_hugging_face_have_the_numbers_of_a_cpu_and_nothing_on_the_host(run: Runs):
    pytest.importorskip("transformers", reason="transformers is not installed: pip install it")
    lines = re.findall(
        r"^= (.+?) \| (\S+) \| (\S+) \| (\S+) \| (\S+) \| \S+ \| \S+$",
        run("hugging_face.py", "--no-trace"),
        re.MULTILINE,
    )
    assert len(lines) == 24
    for name, loss, grads, tokens, host in lines:
        assert float(loss) < 1e-5, name
        assert float(grads) < 1e-5, name
        assert tokens in {"same", "-"}, name
        assert float(host) <= 5, name
