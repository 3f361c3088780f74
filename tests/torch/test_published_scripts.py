"""Distributed scripts of github.com/pytorch/examples run unchanged, with the numbers of gloo.

They run where `PYTORCH_EXAMPLES` names a checkout, which nothing else needs:
`PYTORCH_EXAMPLES=~/examples pytest -m nightly tests/torch/test_published_scripts.py`.
"""

import os
from pathlib import Path

import pytest

from tests.torch import published_table
from tests.torch.published_table import CHECKOUT, REFUSED, SCRIPTS, Script

pytestmark = [pytest.mark.nightly, pytest.mark.multiproc, pytest.mark.timeout(7200)]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
def test_a_published_script_ends_as_on_gloo_or_is_refused(script: Script):
    if CHECKOUT not in os.environ:
        pytest.skip(f"{CHECKOUT} does not name a checkout of github.com/pytorch/examples")
    if not published_table.is_runnable(script):
        pytest.skip(f"the script needs packages: pip install {' '.join(published_table.NEEDS)}")
    row = published_table.measured(script, Path(os.environ[CHECKOUT]))
    if script.path in REFUSED:
        assert row.result.startswith("refused: torch.distributed.rpc: ")
    else:
        assert row.result == "as gloo"
