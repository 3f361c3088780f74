"""The secret of a run over several hosts, and the id of the run that follows from it.

A process with the secret may take part in the run. So it is never on a command line, which every
user of a host can read, and a file of it has mode 0600.
"""

import os
from collections.abc import Mapping
from hashlib import blake2b
from pathlib import Path
from stat import S_IMODE

from runtime.core.errors import UsageError
from runtime.wire.environment import SECRET, SECRET_FILE

_LEAST_BYTES, _MOST_BYTES = 16, 4096
_PERSON = b"kernbench run id"
_FOR_OTHERS = 0o077
_HOW = "head -c 32 /dev/urandom | base64 > FILE; chmod 600 FILE"


def read_secret(environment: Mapping[str, str], file: Path | None) -> bytes | None:
    """The secret of the site: of `file`, an option, or of the environment; None without one.

    Raises `UsageError` for a file that others may read, and for a secret that is too short.
    """
    named = file or (Path(environment[SECRET_FILE]) if environment.get(SECRET_FILE) else None)
    if named is not None:
        return _checked(_contents(named), str(named))
    text = environment.get(SECRET)
    return _checked(text.encode(), SECRET) if text else None


def run_id_of(secret: bytes, run: str) -> str:
    """The id of the run with the text `run`: equal on all hosts, and another one for other runs."""
    key = blake2b(secret, digest_size=32, person=_PERSON).digest()
    return blake2b(run.encode(), key=key, digest_size=32, person=_PERSON).hexdigest()


def _contents(file: Path) -> bytes:
    try:
        # Opened once: what is checked is what is read.
        with file.open("rb") as opened:
            status = os.fstat(opened.fileno())
            mode = S_IMODE(status.st_mode)
            if mode & _FOR_OTHERS:
                raise UsageError(
                    f"{file} has mode {mode:04o}: others can read or write the secret; "
                    f"chmod 600 {file}"
                )
            if status.st_uid not in (os.getuid(), 0):
                raise UsageError(f"{file} belongs to another user, and so does the secret")
            return opened.read(_MOST_BYTES + 1)
    except OSError as error:
        raise UsageError(f"cannot read the secret: {file}: {error.strerror}") from error


def _checked(secret: bytes, source: str) -> bytes:
    secret = secret.strip()
    if not _LEAST_BYTES <= len(secret) <= _MOST_BYTES:
        raise UsageError(
            f"the secret in {source} has {len(secret):,} bytes: expected {_LEAST_BYTES} to "
            f"{_MOST_BYTES:,} ({_HOW})"
        )
    return secret
