"""The table of whole models: a section of docs/pytorch-coverage.md, which `coverage_table` writes.

The models are those of the programs `hugging_face.py`, where transformers is installed
(`kernbench[models]`), and `vision_models.py`, by the architectures of their papers.
"""

import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[2]
PROGRAMS = Path(__file__).parent / "programs"
LIBRARY = "transformers"
IMAGES = {
    "digits": "MNIST's CNN of pytorch/examples, 8 images of 28x28",
    "resnet18": "ResNet-18, 4 channels in its first blocks, 8 images of 3x32x32",
    "unet": "U-Net of two levels, 8 images of 3x16x16",
    "mobilenet": "Blocks of MobileNet, 8 images of 3x16x16",
}
"""The models of `vision_models.py`, and what they are."""
_OPTIONS = ("--no-trace", "--timeout", "900")
_LINE = re.compile(r"^= " + r" \| ".join([r"(.+?)"] * 7) + "$", re.MULTILINE)
_HEAD = """## Models

A training step of a model on one SIP, with random weights, against the same step on a CPU: the
difference of the losses; that of the gradients, for models of Hugging Face in parts of the norm of
all, for others in parts of the largest element; tokens of greedy generation; the shares of
operators and of random draws on the host in the simulated time; processor seconds of the step.
Models of Hugging Face have two layers of width 32 and run without dropout.

"""
_COLUMNS = """| model | loss | gradients | tokens | on the host | draws | processor s |
| --- | ---: | ---: | --- | ---: | ---: | ---: |
"""


@dataclass(frozen=True)
class ModelRow:
    """A model and what the program prints of it."""

    name: str
    loss: str
    gradients: str
    tokens: str
    host: str
    draws: str
    seconds: str

    @property
    def text(self) -> str:
        """The line of the table."""
        tokens = "" if self.tokens == "-" else self.tokens
        shares = f"{self.host} % | {self.draws} %"
        return (
            f"| {IMAGES.get(self.name, self.name)} | {self.loss} | {self.gradients} | {tokens} | "
            f"{shares} | {self.seconds} |\n"
        )


def measured() -> list[ModelRow]:
    """Run all models; those of Hugging Face only where their package is installed."""
    rows = _run("hugging_face.py") if find_spec(LIBRARY) else []
    for name in IMAGES:
        rows += _run("vision_models.py", name)
    return rows


def section(rows: Sequence[ModelRow]) -> str:
    """The text of the section."""
    if find_spec(LIBRARY):
        note = f"Models of Hugging Face are those of {LIBRARY} {version(LIBRARY)}.\n\n"
    else:
        note = f"Models of Hugging Face are left out: {LIBRARY} was not installed.\n\n"
    return _HEAD + note + _COLUMNS + "".join(each.text for each in rows)


def rows_of(output: str) -> list[ModelRow]:
    """The models that a program has printed."""
    return [ModelRow(*each) for each in _LINE.findall(output)]


def _run(program: str, *arguments: str) -> list[ModelRow]:
    with TemporaryDirectory() as out:
        launch = [sys.executable, str(ROOT / "launch.py"), "--sips", "1", "--out", out]
        done = subprocess.run(
            [*launch, *_OPTIONS, str(PROGRAMS / program), *arguments],
            capture_output=True,
            text=True,
            check=False,
        )
    assert not done.returncode, done.stdout[-2000:] + done.stderr[-4000:]
    return rows_of(done.stdout)
