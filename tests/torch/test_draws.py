"""Random numbers of the device are those of PyTorch on a CPU, and the same on every CPU."""

import json
import re
from pathlib import Path

import pytest

from tests.torch.conftest import Runs

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make setup-torch")

SIZES = (1, 3, 0, 2, 15, 16, 17, 100, 40_000, 5, 33)
CALLS = [
    ("normal_", ()),
    ("normal_", (2.0, 3.0)),
    ("uniform_", ()),
    ("uniform_", (-1.0, 3.0)),
    ("bernoulli_.float", (0.3,)),
    ("exponential_", (2.0,)),
    ("log_normal_", (0.0, 0.5)),
    ("cauchy_", (1.0, 2.0)),
    ("geometric_", (0.3,)),
]
ERRORS = {
    "float64": 1e-12,
    "float32": 2e-6,
    "complex64": 2e-6,
    "bfloat16": 2**-7,
    "float16": 2**-9,
}
"""Differences of a few units of the last place, of numbers up to about 20."""


def test_draws_are_those_of_a_cpu_and_leave_its_generator_as_it_does():
    from kernbench.torch_backend.aten.draws.distributions import DRAWS

    for (name, parameters), dtype in ((call, dtype) for call in CALLS for dtype in ERRORS):
        if dtype == "complex64" and name not in {"normal_", "uniform_"}:
            continue
        packet, _, overload = name.partition(".")
        draw = getattr(getattr(torch.ops.aten, packet), overload or "default")
        generators = [torch.Generator().manual_seed(5) for _ in range(2)]
        for size in SIZES:
            expected = torch.empty(size, dtype=getattr(torch, dtype))
            draw(expected, *parameters, generator=generators[0])
            found = DRAWS[name](size, expected.dtype, generators[1], *parameters)
            bound = ERRORS[dtype]
            torch.testing.assert_close(found, expected, rtol=bound, atol=10 * bound, msg=name)
        states = [each.get_state() for each in generators]
        # The number that is kept for the next draw may differ in its last bits.
        assert torch.equal(states[0][:5024], states[1][:5024]), (name, dtype)
        assert states[0][5040] == states[1][5040]


def test_functions_for_draws_have_errors_of_a_few_units_of_the_last_place():
    np = pytest.importorskip("numpy")
    from kernbench.torch_backend.aten.draws import portable_functions as portable

    x = np.concatenate([np.linspace(1e-300, 1e-9, 9999), np.linspace(1e-9, 40, 99_999)])
    cases = [
        (portable.log(x), np.log(x)),
        (portable.log1p(-x[x < 1]), np.log1p(-x[x < 1])),
        (portable.exp(x - 20), np.exp(x - 20)),
    ]
    for found, expected in cases:
        assert (np.abs(found - expected) <= 4 * np.spacing(np.abs(expected))).all()
    for found, expected in zip(portable.cosine_and_sine(x), (np.cos(x), np.sin(x)), strict=True):
        assert np.abs(found - expected).max() < 1e-15


@pytest.mark.slow
@pytest.mark.multiproc
def test_the_digest_does_not_depend_on_the_vector_unit(run: Runs, tmp_path: Path):
    outputs, capabilities = [], []
    for number, environment in enumerate(({}, {"ATEN_CPU_CAPABILITY": "default"})):
        out = tmp_path / str(number)
        outputs.append(run("draws.py", "--out", str(out), **environment))
        capabilities.append(json.loads((out / "run.json").read_text("utf-8"))["cpu"])
    digests = [re.findall(r"^digest +(\w+)$", each, re.MULTILINE) for each in outputs]
    assert digests[0] == digests[1] != []
    assert capabilities == [torch.backends.cpu.get_cpu_capability(), "DEFAULT"]
    closing = re.search(r"rank 0: .*", outputs[0])
    assert closing is not None
    assert re.search(r"% random draws on the host \(.*normal_ \d+", closing[0])
    assert re.search(r"% constants of the host \(arange \d+\)", closing[0])
    assert closing[0].endswith("host fallbacks: none")
