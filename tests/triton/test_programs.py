"""Scripts of Triton with tensors of PyTorch, each as a run of its own."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT, PROGRAMS = Path(__file__).parents[2], Path(__file__).parent / "programs"
pytestmark = [pytest.mark.slow, pytest.mark.multiproc, pytest.mark.timeout(600)]
LINE = "tests/triton/programs/vector_add.py"
STORE = "    tl.store(out_ptr + offsets, x + y, mask=mask)"
PUBLIC = {
    "liger_kernel": (
        *("liger_rms_norm", "liger_layer_norm", "liger_group_norm", "liger_swiglu"),
        *("liger_geglu", "liger_rope", "liger_cross_entropy", "liger_kl_div", "liger_softmax"),
    ),
    "fla": ("fla_rms_norm", "fla_cumsum"),
    "mlstm_kernels": (
        *("mlstm_chunkwise", "mlstm_step", "mlstm_simple_gla", "lightning_attention"),
    ),
    "accelerated_scan": ("scan_forward", "scan_backward"),
    "cut_cross_entropy": ("cut_indexed_dot",),
    "torchao": ("torchao_int8", "torchao_fp8_rows", "torchao_fp8_blocks"),
}


def printed(out: Path, program: str, *arguments: str, sips: int = 1) -> list[str]:
    pytest.importorskip("torch", reason="PyTorch is not installed: make setup-torch")
    done = subprocess.run(
        [
            *(sys.executable, "launch.py", "--sips", str(sips), "--out", str(out)),
            *(str(PROGRAMS / program), *arguments),
        ],
        cwd=ROOT,
        env=os.environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert "leaked" not in done.stderr
    return [line for line in done.stdout.splitlines() if "= " in line]


@pytest.mark.parametrize("sips", [1, 2])
def test_a_script_of_triton_runs_unchanged(tmp_path: Path, sips: int):
    lines = printed(tmp_path / "run", "vector_add.py", sips=sips)
    assert sum("= equal True" in line for line in lines) == sips
    assert sum("= column True" in line for line in lines) == sips
    errors = [line for line in lines if "= error" in line]
    assert len(errors) == sips
    assert "is on 'cpu', and the kernel runs on 'ahbm'; pass x.to('ahbm')" in errors[0]
    if sips == 1:
        assert_why_names_lines(tmp_path / "run")


def assert_why_names_lines(out: Path) -> None:
    """The times of a run belong to lines of the kernel, which are shown with their text."""
    done = subprocess.run(
        [sys.executable, "-m", "kernbench", "why", str(out)],
        cwd=ROOT,
        env=os.environ,
        capture_output=True,
        text=True,
        check=True,
    )
    number = 1 + (PROGRAMS / "vector_add.py").read_text("utf-8").splitlines().index(STORE)
    lines = [each for each in done.stdout.splitlines() if f"{LINE}:{number} " in each]
    assert any(each.endswith(STORE.strip()) for each in lines)


def test_a_script_without_a_kernel_of_triton_does_not_import_it(tmp_path: Path):
    # PyTorch's compiler imports Triton where it is installed, and optimisers import the compiler.
    (tmp_path / "train.py").write_text(
        "import sys\nimport torch\n"
        "x = torch.ones(4, device='ahbm', requires_grad=True)\n"
        "optimizer = torch.optim.AdamW([x])\nx.sum().backward()\noptimizer.step()\n"
        "print('= compiler', 'torch._dynamo' in sys.modules, 'triton' in sys.modules)\n"
    )
    lines = printed(tmp_path / "run", str(tmp_path / "train.py"))
    assert lines == ["= compiler True False"]


@pytest.mark.nightly
@pytest.mark.parametrize("name", [each for names in PUBLIC.values() for each in names])
def test_a_kernel_of_a_public_collection_runs_unchanged(tmp_path: Path, name: str):
    (package,) = [package for package, names in PUBLIC.items() if name in names]
    if find_spec(package) is None:
        pytest.skip(f"{package} is not installed")
    (line,) = printed(tmp_path / "run", "public_kernels.py", name)
    assert float(line.split()[-1]) < 1e-4
