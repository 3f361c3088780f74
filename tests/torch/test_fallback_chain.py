"""Operators without a kernel are computed by a formula, by PyTorch's decomposition, or on the host:
each stage has the results of a CPU.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.topologies import variant_text
from tests.torch.conftest import Runs

pytestmark = [pytest.mark.slow, pytest.mark.multiproc, pytest.mark.timeout(600)]

PROGRAM = "fallback_chain.py"
CALL_OF_THREE = """
import torch

x = torch.ones(3, device="ahbm")
torch.special.airy_ai(x)
print("host ns:", torch.ahbm.host_fallback_ns())
"""
LINE = re.compile(r"^= (.*?) \| (.*) \| (.*) \| (.*) \| (.*)$", re.MULTILINE)


class Outcome(NamedTuple):
    """The result of a case, and the operators that were decomposed, ran on the host, or may differ
    between processors.
    """

    result: str
    decomposed: str
    on_host: str
    unportable: str


def outcomes_of(output: str) -> Mapping[str, Outcome]:
    return {name: Outcome(*rest) for name, *rest in LINE.findall(output)}


@pytest.fixture(scope="module")
def output(run: Runs) -> str:
    return run(PROGRAM)


@pytest.fixture(scope="module")
def outcomes(output: str) -> Mapping[str, Outcome]:
    return outcomes_of(output)


@pytest.mark.parametrize(
    "case",
    ["precision", "integers", "shifts", "parts of numbers", "rests of fractions"],
)
def test_elementary_functions_and_integers_are_right_without_the_host(
    case: str, outcomes: Mapping[str, Outcome]
):
    assert outcomes[case] == ("[]", "", "", "")


def test_complex_numbers_have_the_results_of_a_cpu(outcomes: Mapping[str, Outcome]):
    assert outcomes["complex numbers"] == ("[]", "", "exp.out log.out", "exp.out log.out")


def test_a_formula_computes_on_the_device_and_is_no_decomposition(outcomes: Mapping[str, Outcome]):
    assert outcomes["formula"] == ("equal", "", "", "")
    # Bins of 7 / 8: 7 and the numbers beyond 6.125 are in the last one, 9 in none.
    assert outcomes["counts of integers"] == ("[1, 2, 0, 0, 0, 1, 0, 3]", "", "", "")


def test_a_decomposition_computes_on_the_device_and_is_portable(outcomes: Mapping[str, Outcome]):
    assert outcomes["decomposition"] == ("equal", "hardswish", "", "")
    assert outcomes["gradient"] == ("equal", "hardswish hardswish_backward mish", "", "")


def test_a_gradient_without_a_decomposition_is_that_of_the_decomposed_operator(
    outcomes: Mapping[str, Outcome],
):
    assert outcomes["gradient of a decomposition"] == ("equal", "grid_sampler_2d", "", "")


@pytest.mark.parametrize(
    ("case", "operator"),
    [
        ("circular", "circle"),
        ("circular by another", "first"),
        ("item", "choose"),
        ("part on the host", "partly"),
    ],
)
def test_a_decomposition_that_cannot_end_on_the_device_leaves_all_of_it_to_the_host(
    case: str, operator: str, outcomes: Mapping[str, Outcome]
):
    name = f"chain::{operator}"
    assert outcomes[case] == ("equal", "", name, name)


def test_a_decomposition_that_was_given_up_is_not_tried_again(outcomes: Mapping[str, Outcome]):
    # The first call multiplies before it comes to itself; so would one of each other shape.
    assert outcomes["given up once"].result == "[1, 0, 0]"


def test_operands_of_16_bits_are_computed_in_float32_and_rounded_once(
    outcomes: Mapping[str, Outcome],
):
    assert outcomes["rounded once"] == ("[0.5, 0.25, 1.5]", "chain::carry", "", "")
    # The greatest number of float32 would be infinite in bfloat16.
    assert outcomes["limits of bfloat16"].result == "[0.0, 0.0, 0.0]"


def test_results_are_written_to_out_which_is_resized(outcomes: Mapping[str, Outcome]):
    assert outcomes["out"] == ("equal", "renorm", "", "")
    assert outcomes["out of another type"].result == (
        "renorm: the result has the type torch.float32, which cannot be cast to that of its "
        "tensor, torch.int64"
    )


def test_an_operator_in_place_writes_its_operand_alone(outcomes: Mapping[str, Outcome]):
    assert outcomes["in place"] == ("equal", "hardtanh", "", "")
    assert outcomes["in place of another shape"].result == (
        "chain::grow: an operand of shape [3] cannot hold the result of shape [6]"
    )
    assert outcomes["own memory"] == ("[1.0, 1.0]", "chain::same", "", "")


def test_autocast_does_not_reach_into_a_decomposition(outcomes: Mapping[str, Outcome]):
    assert outcomes["autocast"] == ("torch.float32", "hardswish", "", "")


def test_the_host_computes_in_a_wider_type_where_a_cpu_lacks_one(outcomes: Mapping[str, Outcome]):
    name = "special_airy_ai.out"
    assert outcomes["wider type"] == ("equal", "", name, name)


def test_random_numbers_are_not_decomposed(outcomes: Mapping[str, Outcome]):
    assert outcomes["random"] == ("drawn", "", "", "")


def test_the_closing_line_names_decomposed_operators_with_their_launches(output: str):
    line = next(line for line in output.splitlines() if line.startswith("rank 0: "))
    assert line.endswith("host fallbacks: none; decomposed: hardtanh 1 (launches: 1)")


def test_an_error_in_place_of_a_fallback_lets_decompositions_run(run: Runs):
    environment = {"KERNBENCH_FALLBACK": "error"}
    output = run(PROGRAM, program_arguments=["decomposition", "formula"], **environment)
    assert outcomes_of(output)["decomposition"].decomposed == "hardswish"
    output = run(PROGRAM, program_arguments=["part on the host"], code=1, **environment)
    assert "chain::partly has no kernel on 'ahbm', and KERNBENCH_FALLBACK is 'error'" in output


def test_decompositions_and_formulas_take_their_time_without_data(run: Runs):
    arguments = {"program_arguments": ["without data"]}
    own, other = (
        outcomes_of(run(PROGRAM, *options, **arguments))["without data"]
        for options in ((), ("--no-data",))
    )
    assert own == other
    assert own.decomposed == "hardswish"
    output = run(PROGRAM, "--no-data", program_arguments=["host without data"], code=1)
    assert "special_airy_ai.out: an operand, which the host reads, is not known" in output


def test_an_operator_on_the_host_takes_time_for_the_call_and_for_each_element(
    run: Runs, tmp_path: Path
):
    script, topology = tmp_path / "script.py", tmp_path / "topology.yaml"
    script.write_text(CALL_OF_THREE)

    def host_ns(call_ns: float, element_ns: float) -> float:
        topology.write_text(
            variant_text(
                host__fallback_overhead_ns=call_ns, host__fallback_ns_per_element=element_ns
            )
        )
        output = run(str(script), "--topology", str(topology))
        return float(re.findall(r"host ns: (\S+)", output)[0])

    copies = host_ns(0.0, 0.0)
    # Three elements of the operand and three of the result.
    assert host_ns(700.0, 0.0) == pytest.approx(copies + 700)
    assert host_ns(700.0, 11.0) == pytest.approx(copies + 700 + 6 * 11)
