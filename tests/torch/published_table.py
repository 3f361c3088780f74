"""The table of the distributed scripts of github.com/pytorch/examples, which are not part of this
project: a section of docs/pytorch-coverage.md, which `coverage_table` writes.

`PYTORCH_EXAMPLES` names a checkout of them. Each script runs unchanged, on CPUs with gloo and on
the device, by the program `published.py`, which records its losses and weights.
"""

import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.torch.coverage_record import CoverageProgram, CoverageRecord

ROOT = Path(__file__).parents[2]
PROGRAMS = Path(__file__).parent / "programs"
CHECKOUT = "PYTORCH_EXAMPLES"
"""The variable with the directory of the checkout."""
NEEDS = ("hydra", "boto3")
"""Packages that a script of the checkout imports; without them it is left out."""
SHARE = 1e-4
"""Greatest differences of losses and weights, in parts of the largest one of a rank: weights of
several steps, whose sums have another order. Float16 has a share of its own."""
SHARE_OF_FLOAT16 = 1e-2
_LIMIT_S = 3000
_LINE = re.compile(r"^= (\d+) \| (.*) \| (.*)$", re.MULTILINE)
_ON_DEVICE = re.compile(r"rank 0: .*?([\d.]+) % of simulated time on the device")
_ERROR = re.compile(r"kernbench: error: rank \d+ raised (.*)")
_SMALL_GPT = (
    "data_config.truncate=0.0003",
    "data_config.block_size=32",
    *("gpt_config.n_layer=2", "gpt_config.n_head=2", "gpt_config.n_embd=32"),
    *("trainer_config.batch_size=8", "trainer_config.data_loader_workers=0"),
    "trainer_config.max_epochs=1",
)


@dataclass(frozen=True)
class Script:
    """A script under `distributed`, with its arguments and those of `kernbench run`; it ends after
    `steps` steps, or with 0 at its own end. `changes` are those of a user.
    """

    path: str
    ranks: int
    arguments: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    steps: int = 0
    changes: str = "nothing"
    is_float16: bool = False
    data: str = ""
    """An argument with a file of the checkout behind it."""

    @property
    def name(self) -> str:
        """The script with its options."""
        return " ".join([self.path, *(each for each in self.arguments if each.startswith("--"))])


SCRIPTS = (
    Script("ddp/example.py", 2),
    Script("tensor_parallelism/tensor_parallel_example.py", 2),
    Script("tensor_parallelism/sequence_parallel_example.py", 2),
    Script(
        "minGPT-ddp/mingpt/main.py",
        2,
        arguments=_SMALL_GPT,
        steps=2,
        changes="path of the data, which is a URL, and sizes, as arguments",
        is_float16=True,
        data="data_config.path=minGPT-ddp/mingpt/data/input.txt",
    ),
    Script(
        "ddp-tutorial-series/multigpu_torchrun.py",
        2,
        arguments=("1", "1"),
        options=("--as-cuda",),
        changes="`--as-cuda`",
    ),
    Script(
        "ddp-tutorial-series/multigpu.py",
        2,
        arguments=("1", "1"),
        options=("--as-cuda",),
        changes="`--as-cuda`",
    ),
    Script(
        "ddp-tutorial-series/single_gpu.py",
        1,
        arguments=("1", "1"),
        options=("--as-cuda",),
        changes="`--as-cuda`",
    ),
    Script("rpc/rnn/main.py", 2, changes=""),
    Script("rpc/ddp_rpc/main.py", 4, changes=""),
)
REFUSED = frozenset({"rpc/rnn/main.py", "rpc/ddp_rpc/main.py"})
"""Scripts of remote procedure calls, which have no result to compare."""
_HEAD = f"""## Distributed scripts of PyTorch's examples

The scripts of `run_distributed_examples.sh` of
[pytorch/examples](https://github.com/pytorch/examples), and its series about
DistributedDataParallel, unchanged: started by `kernbench run --sips N`, and on CPUs with gloo.
*as gloo*: the losses of all ranks and steps, and the weights at the end, differ by at most 1e-4 of
the largest one, in float16 by 1e-2. Scripts that need two devices print so and end on one SIP.
Where the steps are given, the script is ended after them. `FSDP2/example.py` ends as well, with
99.2 % on the device, and has no result to compare: its `reset_parameters` leaves out the layers, so
that it trains what their memory has had before, NaN on CPUs, as [`kernbench
check`](check.md#undefined-values) reports. `fsdp_tp_example.py` is left out: a step of 2,048 tokens
takes each rank more than 50 s of a processor; FSDP2 with tensor parallelism has tests of its own.
`{CHECKOUT}=CHECKOUT make torch-coverage PARTS=published` writes the table; a script whose
packages are not installed is left out of it.

| script | SIPs | result | on the device | what a user changes |
| --- | ---: | --- | ---: | --- |
"""


@dataclass(frozen=True)
class PublishedRow:
    """A script, its result, and the share of the device in the simulated time, in percent."""

    script: Script
    result: str
    share: str = ""

    @property
    def text(self) -> str:
        """The line of the table."""
        steps = f", {self.script.steps} steps" if self.script.steps > 1 else ", 1 step"
        result = self.result + (steps if self.script.steps else "")
        share = f"{self.share} %" if self.share else ""
        return (
            f"| {self.script.name} | {self.script.ranks} | {result} | {share} | "
            f"{self.script.changes} |"
        )


def section(record: CoverageRecord, old: str) -> str:
    """The text of the section: scripts that this machine cannot run keep their rows of the old
    one.
    """
    checkout = os.environ.get(CHECKOUT)
    runnable = [each for each in SCRIPTS if is_runnable(each)] if checkout else []
    if not checkout:
        record.note(f"scripts of pytorch/examples keep their rows: {CHECKOUT} names no checkout")
    elif len(runnable) < len(SCRIPTS):
        needs = ", ".join(NEEDS)
        kept = ", ".join(each.name for each in SCRIPTS if each not in runnable)
        record.note(f"rows that stay, of scripts that need {needs}: {kept}")
    command = (sys.executable, "-m", "tests.torch.published_table")
    environment = {"PYTHONPATH": _paths(), CHECKOUT: str(Path(checkout or "").resolve())}
    program = CoverageProgram(command, [each.name for each in runnable], environment)
    lines = record.lines("published", [program])
    rows = {name: line.replace("= ", "| ", 1) for name, line in lines.items()}
    for line in old.splitlines(keepends=True):
        rows.setdefault(line.split(" | ")[0].removeprefix("| "), line)
    return _HEAD + "".join(rows.get(each.name, "") for each in SCRIPTS)


def is_runnable(script: Script) -> bool:
    """Whether the packages of a script are installed."""
    return not script.data or all(find_spec(each) is not None for each in NEEDS)


def measured(script: Script, checkout: Path) -> PublishedRow:
    """Run a script on the device, and with gloo unless the device refuses it."""
    folder = checkout / "distributed"
    data = [script.data.replace("=", f"={folder}/")] if script.data else []
    command = [str(PROGRAMS / "published.py"), str(script.steps), str(folder / script.path)]
    command += [*script.arguments, *data]
    kernbench = [sys.executable, "-m", "kernbench", "run", "--sips", str(script.ranks)]
    code, output = _run([*kernbench, *script.options, "--no-trace", *command])
    if code:
        error = _ERROR.search(output)
        assert error, output[-4000:]
        reason = error[1].partition(" at ")[2].partition(": ")[2].partition(";")[0]
        return PublishedRow(script, f"refused: {reason}")
    torchrun = ["torch.distributed.run", "--standalone", "--nproc-per-node", str(script.ranks)]
    worker = str(PROGRAMS / "gloo_worker.py")
    code, expected = _run([sys.executable, "-m", *torchrun, worker, *command], BACKEND="gloo")
    assert not code, expected[-4000:]
    share = _ON_DEVICE.search(output)
    assert share, output[-4000:]
    return PublishedRow(script, _compared(script, numbers(output), numbers(expected)), share[1])


def numbers(output: str) -> Mapping[int, list[float]]:
    """The losses and weights of each rank."""
    return {
        int(rank): [float(each) for each in f"{losses} {norms}".split()]
        for rank, losses, norms in _LINE.findall(output)
    }


def _compared(
    script: Script, own: Mapping[int, list[float]], expected: Mapping[int, list[float]]
) -> str:
    share = SHARE_OF_FLOAT16 if script.is_float16 else SHARE
    is_same = own.keys() == expected.keys() == set(range(script.ranks)) and all(
        len(own[rank]) == len(expected[rank])
        and max(abs(a - b) for a, b in zip(own[rank], expected[rank], strict=True))
        <= share * max(map(abs, expected[rank]))
        for rank in own
    )
    return "as gloo" if is_same else "other results"


def _run(command: Sequence[str], **environment: str) -> tuple[int, str]:
    """The exit code and the output of a command in an empty directory."""
    with TemporaryDirectory() as folder:
        done = subprocess.run(
            command,
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=_LIMIT_S,
            env={**os.environ, "PYTHONPATH": _paths(), **environment},
        )
    return done.returncode, done.stdout + done.stderr


def _paths() -> str:
    return os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH", ""))))


if __name__ == "__main__":
    for each in SCRIPTS:
        if each.name in sys.argv[1:]:
            row = measured(each, Path(os.environ[CHECKOUT])).text
            sys.stdout.write(f"= {row.removeprefix('| ')}\n")
            sys.stdout.flush()
