"""`kernbench.kernel`: kernels of the user in programs of PyTorch (docs/own-kernels.md)."""

import json
import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from runtime.model.addresses import AddressMap, PhysAddr
from runtime.model.topology import parse_topology
from tests.support.runs import called
from tests.torch.conftest import EXAMPLES, PROGRAMS, ROOT, Runs
from tests.torch.test_distributed import digest, values
from tests.torch.test_no_data import check_times

pytestmark = [pytest.mark.slow, pytest.mark.multiproc, pytest.mark.timeout(600)]

PROGRAM, CALLS = "own_kernels.py", "own_kernel_calls.py"
EXAMPLE = str(EXAMPLES / "own_kernels.py")
NAMES = re.findall(r'^    "([\w ]+)": \w+,$', (PROGRAMS / PROGRAM).read_text("utf-8"), re.MULTILINE)
REFUSALS = {
    "a name alone": "ValueError: kernel 'copied': the name of an operator is namespace::name",
    "an output that is no parameter": (
        "ValueError: kernel 'own::x': outputs= names 'z', which is no parameter of the kernel; "
        "these are x, y, count"
    ),
    "an output that is a number": "TypeError: kernel 'own::x': output 'count' is no tl.Pointer",
    "no output": (
        "ValueError: kernel 'own::x': the kernel writes nothing: name the parameters of its "
        "results in outputs=, or those of tensors that it changes in mutates_args="
    ),
    "a changed tensor that is a result": (
        "ValueError: kernel 'own::x': 'y' of mutates_args= or strided= is no tensor of a call"
    ),
    "no types": (
        "TypeError: kernel 'own::x': parameter 'x' has the annotation None; the type of a "
        "parameter is tl.Pointer, tl.Pointer | None, bool, int, float or str"
    ),
    "a type without a meaning": (
        "TypeError: kernel 'own::x': an annotation of the kernel is a string, and its name "
        "'pointer' is not defined"
    ),
    "a parameter by keyword": (
        "TypeError: kernel 'own::x': parameter 'count': arguments of a kernel are by position"
    ),
    "no tensor": (
        "ValueError: kernel 'own::x': the kernel reads no tensor: a parameter that is no output "
        "must be one"
    ),
    "a size of a result": (
        "ValueError: kernel 'own::x': the function of size 'count' reads 'y', which is no "
        "argument of a call; these are x"
    ),
    "a grid of sizes": (
        "ValueError: kernel 'own::x': the function of the grid reads 'count', which is no "
        "argument of a call; these are x"
    ),
    "a placement by a number": (
        "ValueError: kernel 'own::x': placement= names 'count', which is no tensor of the kernel"
    ),
    "complex numbers": (
        "TypeError: own::copied: x has elements of torch.complex64, which the hardware has not; "
        "it has float16, bfloat16, float32, int8, int32, int64, uint8, bool, float64, "
        "float8_e4m3fn, float8_e5m2"
    ),
    "a tensor of the CPU": (
        "NotImplementedError: own::copied is a kernel of 'ahbm', and its tensors are on 'cpu'; "
        "for other devices, give it a reference= in operators of PyTorch"
    ),
    "tensors of two devices": (
        "ValueError: own::biased: bias is on 'cpu', and the kernel runs on 'ahbm'; pass "
        "bias.to('ahbm')"
    ),
    "a changed tensor with gaps": (
        "ValueError: own::changed: x, which the kernel writes, has strides (8, 1) and shape "
        "(8, 2); pass a contiguous tensor, or name 'x' in strided= and give the kernel the strides"
    ),
    "no tensor at the placement": (
        "ValueError: own::biased: bias is None, and the kernel runs on its PEs"
    ),
    "an empty grid": (
        "ValueError: own::in_parts: grid (0, 2): it is a tuple of 1 to 3 positive integers, such "
        "as (8,) or (4, 2)"
    ),
    "a number in place of a tensor": (
        "RuntimeError: own::copied() Expected a value of type 'Tensor' for argument 'x' but "
        "instead found type 'float'."
    ),
    "no gradient": (
        "RuntimeError: Trying to backward through own.copied.default but no autograd formula was "
        "registered. Please use register_autograd to add one."
    ),
}


@pytest.fixture(scope="module")
def outcomes(run: Runs) -> Mapping[str, str]:
    return dict(re.findall(r"^([\w ]+) \| (.*)$", run(PROGRAM), re.MULTILINE))


@pytest.mark.parametrize("name", NAMES)
def test_a_kernel_is_an_operator_of_pytorch(name: str, outcomes: Mapping[str, str]):
    assert outcomes[name] == "ok"


def test_the_program_reports_every_case(outcomes: Mapping[str, str]):
    assert len(NAMES) == 18
    assert list(outcomes) == NAMES


def test_what_is_no_kernel_and_what_is_no_call_of_one_is_refused_in_one_line(run: Runs):
    printed = run("own_kernel_refusals.py")
    found = dict(re.findall(r"^([\w ]+) \| (.*)$", printed, re.MULTILINE))
    assert found == REFUSALS


def test_a_kernel_that_fails_ends_the_run_with_its_name_and_both_lines(run: Runs):
    printed = run("own_kernel_refusals.py", program_arguments=["fails"], code=1)
    kernel, call = (
        rf"own_kernel_refusals\.py:{_line('own_kernel_refusals.py', text)}"
        for text in ("    tl.store(y + 1", "        too_long(")
    )
    assert re.search(
        rf"page fault in kernel 'own::too_long' program \(0,\) on sip 0 cube 0 pe 0 at "
        rf"\S*{kernel}: .*\nlaunched at \S*{call}\n",
        printed,
    )


def _line(name: str, begin: str) -> int:
    lines = (PROGRAMS / name).read_text("utf-8").splitlines()
    (number,) = (at for at, line in enumerate(lines, start=1) if line.startswith(begin))
    return number


def test_kernels_take_the_times_of_a_run_with_data(run: Runs, tmp_path: Path):
    assert len(check_times(run, tmp_path, CALLS, "times")) == 6


def test_integers_that_a_kernel_writes_are_not_known_without_data(run: Runs):
    assert "= [0, 1, 2, 3]" in run(CALLS, program_arguments=["integers"])
    printed = run(CALLS, "--no-data", program_arguments=["integers"], code=1)
    assert "rank 0 raised NoDataError" in printed
    assert "an element of a tensor of torch.int64" in printed


@pytest.mark.parametrize(("how", "pes"), [("rows", range(128)), ("view", range(64, 128))])
def test_each_program_runs_on_the_pe_that_holds_its_row(
    how: str, pes: range, run: Runs, tmp_path: Path
):
    run(CALLS, program_arguments=[how], out=tmp_path)
    topology = (tmp_path / "topology.yaml").read_text("utf-8")
    addresses = AddressMap(parse_topology(topology, "topology.yaml", 1))
    lines = map(json.loads, (tmp_path / "oplog.jsonl").read_text("utf-8").splitlines())
    loads = [each for each in lines if (each["engine"], each["name"]) == ("pe_dma", "load")]
    # A load for each of 256 rows; the second half of a tensor lies on the second half of the PEs.
    assert len(loads) == 256
    for each in loads:
        row = PhysAddr.decode(each["inputs"][0]["address"], addresses)
        assert (row.cube, row.pe) == (each["cube"], each["pe"])
    assert {8 * each["cube"] + each["pe"] for each in loads} == set(pes)


def test_distributed_tensors_take_the_rules_of_sharding_that_pytorch_registers(run: Runs):
    printed = run(CALLS, program_arguments=["sharded"], sips=2)
    assert sorted(re.findall(r"^= .*$", printed, re.MULTILINE)) == ["= rank 0 ok", "= rank 1 ok"]


def test_folded_launches_and_hash_seeds_have_one_digest(run: Runs):
    environments: tuple[dict[str, str], ...] = (
        {},
        {"KERNBENCH_FOLD": "0"},
        {"PYTHONHASHSEED": "7"},
    )
    digests = {digest(run(CALLS, program_arguments=["times"], **each)) for each in environments}
    assert len(digests) == 1


@pytest.mark.parametrize("sips", [1, 2])
def test_a_llama_with_own_kernels_has_the_losses_of_pytorch_on_cpus(
    sips: int, run: Runs, on_gloo: Runs, tmp_path: Path
):
    lines, losses = values(run(EXAMPLE, sips=sips, out=tmp_path))
    expected_lines, expected = values(on_gloo(EXAMPLE, "plain", ranks=sips))
    assert len(expected) == 3 * sips
    assert lines == expected_lines
    assert losses == pytest.approx(expected, rel=0, abs=1e-5)
    report = called(ROOT, "why", str(tmp_path)).out
    launches = dict(re.findall(r"^ +(own::\w+) +[\d.,]+ +(\d+) ", report, re.MULTILINE))
    # Three norms and an attention in each step, and again on each rank.
    assert launches == {"own::rms_norm": f"{9 * sips}", "own::attention": f"{3 * sips}"}


def test_on_cpus_own_kernels_are_their_formulas(on_gloo: Runs):
    own, plain = (values(on_gloo(EXAMPLE, *how, ranks=1)) for how in ((), ("plain",)))
    assert own[1] == pytest.approx(plain[1], rel=0, abs=1e-5)
