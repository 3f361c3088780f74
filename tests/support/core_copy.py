"""A copy of the checkout whose compiled core is built in another way, with other checks in it.

The checkout keeps its own core, which other tests use meanwhile.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

ROOT = Path(__file__).parents[2]
FOLDERS = ("runtime", "sip_node", "coordinator", "kernbench", "tests", "examples")
FILES = ("hatch_build.py", "launch.py", "topology.yaml", "ccl.yaml", "pyproject.toml", "README.md")
_BUILD = """
import hatch_build
for directives in (hatch_build.DIRECTIVES, hatch_build.TEXT_DIRECTIVES):
    directives.update({directives})
hatch_build.FLAGS += {flags}
hatch_build.build_if_possible(print)
"""


class CoreCopy:
    """The copy in a folder, which is replaced."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        ignored = shutil.ignore_patterns("*.so", "__pycache__")
        for name in FOLDERS:
            shutil.rmtree(folder / name, ignore_errors=True)
            shutil.copytree(ROOT / name, folder / name, ignore=ignored)
        for name in FILES:
            shutil.copy2(ROOT / name, folder / name)

    def build(
        self,
        directives: Mapping[str, bool] = MappingProxyType({}),
        flags: Sequence[str] = (),
        **variables: str,
    ) -> None:
        """Build the core with more directives of Cython and more flags of the compiler.

        `variables` are those of the environment of the build.
        """
        program = _BUILD.replace("{directives}", repr(dict(directives)))
        program = program.replace("{flags}", repr(list(flags)))
        self.run(("-c", program), variables).check_returncode()

    def run(
        self, arguments: Sequence[str], variables: Mapping[str, str] | None = None, **options: Any
    ) -> "subprocess.CompletedProcess[str]":
        """Run Python with the compiled core of the copy."""
        environment = {
            **os.environ,
            "PYTHONPATH": str(self.folder),
            "KERNBENCH_CORE": "compiled",
            **(variables or {}),
        }
        return subprocess.run(
            [sys.executable, *arguments],
            check=False,
            cwd=self.folder,
            env=environment,
            text=True,
            **options,
        )
