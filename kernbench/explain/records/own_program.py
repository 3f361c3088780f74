"""Decides whether the program of a recorded run is surely the caller's own, and unchanged.

A run directory is data: a copy of another user's directory may name any program. So a program that
it names is executed only if a run of the caller has written this directory, if every module that
the run imported is unchanged, and if no other user can write to any of it.
"""

import grp
import os
import pwd
import stat
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path

import msgspec

from kernbench.explain.records.directory import CCL, RUN, TOPOLOGY
from kernbench.explain.records.records import RecordedRun, RunSummary
from runtime.core.code.bench_source import is_file, split_source
from runtime.core.code.imported_code import SCRIPT, CodeFile, is_of_user
from runtime.core.sha256 import sha256_hex

_PART_BYTES = 1 << 20
_ROOT = 0
"""The user who can change every file anyway."""


def doubts(records: RecordedRun) -> Iterator[str]:
    """The reasons not to execute the program of a run, each in a line; none if it is safe."""
    yield from _doubts_of_directory(records)
    yield from _doubts_of_program(records.run)
    for module, code in records.run.user_code.items():
        yield from _doubts_of_module(module, code)


def _doubts_of_directory(records: RecordedRun) -> Iterator[str]:
    directory, owners = os.path.realpath(records.directory), {os.geteuid()}
    try:
        folder = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError as error:
        yield f"cannot open {directory}: {error.strerror}"
        return
    try:
        status = os.fstat(folder)
        yield from _doubts_of_owner(directory, status, owners)
        if status.st_ino != records.run.inode:
            yield f"{directory} is a copy of the directory that the run has written"
        # Read once more, from files that are known to be the caller's.
        for name in (RUN, TOPOLOGY, CCL):
            content = bytearray()
            yield from _doubts_of_file(f"{directory}/{name}", owners, content, name, folder)
            if not _is_as_read(records, name, bytes(content)):
                yield f"{directory}/{name} is not the file that the run has written"
    finally:
        os.close(folder)


def _is_as_read(records: RecordedRun, name: str, content: bytes) -> bool:
    if name == RUN:
        with suppress(msgspec.DecodeError):
            return msgspec.json.decode(content, type=RunSummary) == records.run
        return False
    text = records.topology_text if name == TOPOLOGY else records.ccl_text
    return content == text.encode()


def _doubts_of_program(run: RunSummary) -> Iterator[str]:
    """Whether the run has recorded the code of the program that its report names."""
    module, file = run.program, ""
    if run.kind == "script":
        module, file = SCRIPT, run.program
    elif run.kind == "bench":
        module, _ = split_source(run.program)
        if is_file(module):
            module, file = Path(module).stem, module
        elif not is_of_user(module):
            return
    code = run.user_code.get(module) or run.user_code.get(f"{module}.__main__")
    if code is None or (file and code.file != file):
        yield f"the run has no record of the code of {run.program}"


def _doubts_of_module(module: str, code: CodeFile) -> Iterator[str]:
    path, owners = code.file, {os.geteuid(), _ROOT}
    if os.path.realpath(path) != path:
        yield f"{path} is not a path without links"
    content = bytearray()
    yield from _doubts_of_file(path, owners, content)
    if sha256_hex(bytes(content)) != code.sha256:
        yield f"{path} has changed since the run"
    folder = Path(path).parent
    # Who can write to the folder can put compiled code of its modules there. Of a script, Python
    # executes the source, and in a folder with the sticky bit no other user can replace that.
    with suppress(OSError):
        shared = module == SCRIPT and folder.stat().st_mode & stat.S_ISVTX
        if not shared:
            yield from _doubts_of_owner(str(folder), folder.stat(), owners)
            cache = folder / "__pycache__"
            yield from _doubts_of_owner(str(cache), cache.stat(), owners)


def _doubts_of_file(
    path: str,
    owners: Collection[int],
    content: bytearray,
    name: str = "",
    folder: int | None = None,
) -> Iterator[str]:
    """Whether a file may be another user's; its bytes are added to `content`."""
    try:
        file = os.open(name or path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
    except OSError as error:
        yield f"cannot open {path}: {error.strerror}"
        return
    try:
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode):
            yield f"{path} is not a file"
            return
        yield from _doubts_of_owner(path, status, owners)
        while part := os.read(file, _PART_BYTES):
            content += part
    finally:
        os.close(file)


def _doubts_of_owner(path: str, status: os.stat_result, owners: Collection[int]) -> Iterator[str]:
    if status.st_uid not in owners:
        yield f"{path} belongs to user {_user_name(status.st_uid)}, not to you"
    elif status.st_mode & stat.S_IWOTH or (
        status.st_mode & stat.S_IWGRP and not _is_private_group(status.st_gid)
    ):
        yield f"other users can write to {path} (mode {stat.S_IMODE(status.st_mode):o})"


def _user_name(uid: int) -> str:
    with suppress(KeyError):
        return pwd.getpwuid(uid).pw_name
    return str(uid)


def _is_private_group(gid: int) -> bool:
    """Whether the caller is the only member of a group, as many systems give one to each user."""
    with suppress(KeyError):
        group, user = grp.getgrgid(gid), pwd.getpwuid(os.geteuid())
        return group.gr_name == user.pw_name and not {*group.gr_mem} - {user.pw_name}
    return False
