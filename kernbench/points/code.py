"""The code that measures a point: a worker with other code would give other rows."""

import sys
from functools import cache
from pathlib import Path

from kernbench.points.task import PointCode
from runtime.core.code.imported_code import CodeFile, imported_code, is_of_user
from runtime.core.code.package_check import PACKAGES, ROOT
from runtime.core.sha256 import sha256_hex

_SUFFIXES = (".py", ".pyx", ".pxd")


@cache
def own_code() -> str:
    """SHA-256 of the sources of kernbench, as hex: their names and contents.

    It is the same for an installation and a checkout, and for both cores.
    """
    paths = [
        path
        for package in PACKAGES
        for path in (ROOT / package).rglob("*")
        if path.suffix in _SUFFIXES
    ]
    content = list[bytes]()
    for path in sorted(paths):
        content += (f"{path.relative_to(ROOT).as_posix()}\0".encode(), path.read_bytes(), b"\0")
    return sha256_hex(b"".join(content))


def user_code() -> dict[str, CodeFile]:
    """The modules of the user that this process has imported, with their files as they are now."""
    return {name: file for name, file in imported_code().items() if is_of_user(name)}


def code_of_this_process() -> PointCode:
    """The code that this process would measure points with."""
    return PointCode(own_code(), user_code(), tuple(sys.path))


def difference(expected: PointCode) -> str:
    """The first difference between the code of this process and `expected`; "" if there is none.

    Modules of the user are compared if both processes have imported them.
    """
    if own_code() != expected.own:
        return (
            f"its kernbench in {Path(ROOT)} has the hash {own_code()[:12]}, and the one here "
            f"{expected.own[:12]}: install the same version on both sides"
        )
    here = user_code()
    for name, file in expected.user.items():
        own = here.get(name)
        if own is not None and own.sha256 != file.sha256:
            return (
                f"its module {name!r} ({own.file}) has the hash {own.sha256[:12]}, and the one "
                f"here ({file.file}) {file.sha256[:12]}"
            )
    return ""
