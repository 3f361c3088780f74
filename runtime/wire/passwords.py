"""The password with which an LP connects to a peer: it follows from the id of the run.

The id itself is never sent between LPs. A process without it cannot compute a password, and that of
another run, or of another pair of LPs, is a different one.
"""

from hashlib import blake2b

_KEY_BYTES = 32
_PASSWORD_BYTES = 16
_PERSON = b"kernbench peers"
"""Separates these passwords from all else that may be derived from the id of a run."""


class Passwords:
    """The passwords of the LPs of the run with the id `run_id`."""

    def __init__(self, run_id: str) -> None:
        self._key = blake2b(run_id.encode(), digest_size=_KEY_BYTES, person=_PERSON).digest()

    def of(self, sender: int, receiver: int) -> bytes:
        """The password with which LP `sender` connects to LP `receiver`, 32 hexadecimal digits."""
        pair = f"LP {sender} -> LP {receiver}".encode()
        # A keyed hash: no password can be computed from another.
        code = blake2b(pair, key=self._key, digest_size=_PASSWORD_BYTES, person=_PERSON)
        return code.hexdigest().encode()
