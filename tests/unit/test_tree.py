"""The checkout holds sources, text and pictures, and nothing that a build makes; each package
has its place in a contract of imports.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from tests.support.source import tracked_files

ROOT = Path(__file__).parents[2]
PICTURES = (".png", ".gif")
WITHOUT_CONTRACT = (
    "coordinator.*",
    "kernbench.node",
    "runtime.torch.*",
    "*.compiled",
)
"""Packages below which no order of imports is written down; a package that is added needs one."""


def is_binary(content: bytes) -> bool:
    """Text has no zero byte; libraries, objects, bytecode and archives have one early."""
    return b"\0" in content[:8192]


def test_the_checkout_holds_no_binaries():
    found = [
        str(path.relative_to(ROOT))
        for path in tracked_files(ROOT)
        if path.suffix not in PICTURES and is_binary(path.read_bytes())
    ]
    assert found == []


def test_a_shared_library_counts_as_a_binary():
    library = next(ROOT.glob("runtime/core/compiled/*.so"), None)
    # An ELF header ends with zeros, if the core is not built here.
    content = library.read_bytes() if library else b"\x7fELF\x02\x01\x01" + b"\0" * 57
    assert is_binary(content)


def layers_of(contracts: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The modules which contracts of layers order."""
    for contract in contracts:
        if contract["type"] == "layers":
            for layer in contract["layers"]:
                for name in re.findall(r"[\w.]+", layer):
                    for container in contract.get("containers", [""]):
                        yield f"{container}.{name}".strip(".")


def test_every_package_has_its_place_in_a_contract_of_imports():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]
    packages = {
        ".".join(path.parent.relative_to(ROOT).parts)
        for root in settings["root_packages"]
        for path in (ROOT / root).rglob("__init__.py")
    }
    lawless = packages - set(layers_of(settings["contracts"]))
    assert {
        each for each in lawless if not any(fnmatchcase(each, name) for name in WITHOUT_CONTRACT)
    } == set()


def test_a_contract_orders_the_modules_of_its_layers_in_each_container():
    layers = {"type": "layers", "layers": ["a | (b)", "c.d"], "containers": ["x", "y.z"]}
    others = [{"type": "layers", "layers": ["e"]}, {"type": "forbidden"}]
    names = ["x.a", "y.z.a", "x.b", "y.z.b", "x.c.d", "y.z.c.d", "e"]
    assert list(layers_of([layers, *others])) == names
