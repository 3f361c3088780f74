"""The table of whole models: a section of docs/pytorch-coverage.md, which `coverage_table` writes.

The models are those of the programs `hugging_face.py`, where transformers is installed
(`kernbench[models]`), and `vision_models.py`, by the architectures of their papers.
"""

import re
import sys
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from tests.torch.coverage_record import CoverageProgram, CoverageRecord

ROOT = Path(__file__).parents[2]
PROGRAMS = Path(__file__).parent / "programs"
LIBRARY = "transformers"
IMAGES = {
    "digits": "MNIST's CNN of pytorch/examples, 8 images of 28x28",
    "resnet18": "ResNet-18, 4 channels in its first blocks, 8 images of 3x32x32",
    "resnet18 of full size": "ResNet-18, 1 image of 3x224x224",
    "unet": "U-Net of two levels, 8 images of 3x16x16",
    "mobilenet": "Blocks of MobileNet, 8 images of 3x16x16",
}
"""The models of `vision_models.py`, and what they are."""
_OPTIONS = ("--no-trace", "--timeout", "900")
_LINE = re.compile(r"^= " + r" \| ".join([r"(.+?)"] * 7) + "$")
_NOTE = re.compile(r"^Models of Hugging Face are those of .*\n\n", re.MULTILINE)
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


def hugging_face_names() -> list[str]:
    """The models of `hugging_face.py`."""
    source = (PROGRAMS / "hugging_face.py").read_text("utf-8")
    return re.findall(r'^    "(.+?)": \(', source, re.MULTILINE)


def section(record: CoverageRecord, old: str) -> str:
    """The text of the section; models of Hugging Face keep their rows of the old one where their
    package is not installed.
    """
    launch = (sys.executable, str(ROOT / "launch.py"), "--sips", "1", *_OPTIONS)
    programs = [
        CoverageProgram((*launch, str(PROGRAMS / "vision_models.py")), [name]) for name in IMAGES
    ]
    note = "".join(_NOTE.findall(old)[:1])
    if find_spec(LIBRARY):
        note = f"Models of Hugging Face are those of {LIBRARY} {version(LIBRARY)}.\n\n"
        command = (*launch, str(PROGRAMS / "hugging_face.py"))
        programs.append(CoverageProgram(command, hugging_face_names()))
    else:
        record.note(f"models of Hugging Face keep their rows: {LIBRARY} is not installed")
    lines = record.lines("models", programs)
    rows = {name: row_of(line).text for name, line in lines.items()}
    kept = {line.split(" | ")[0].removeprefix("| "): f"{line}\n" for line in old.splitlines()}
    names = [*hugging_face_names(), *IMAGES]
    return _HEAD + note + _COLUMNS + "".join(rows.get(each) or kept.get(each, "") for each in names)


def row_of(line: str) -> ModelRow:
    """The model that a program has printed."""
    match = _LINE.match(line)
    assert match, line
    return ModelRow(*match.groups())
