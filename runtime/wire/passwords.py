"""Passwords and a key pair which admit a process to the sockets of a run, derived from the run id.

The id itself is never sent between LPs. A process without it cannot compute a password or the key,
and those of another run are different.
"""

from hashlib import blake2b

_KEY_BYTES = 32
_PASSWORD_BYTES = 16
_PERSON = b"kernbench peers"
"""Separates these passwords from all else that may be derived from the id of a run."""
_CURVE_PERSON = b"kernbench curve"
_Z85 = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
"""The digits of Z85 (ZeroMQ RFC 32)."""


class Passwords:
    """The passwords of the LPs of the run with the id `run_id`, and its CURVE key."""

    def __init__(self, run_id: str) -> None:
        self._key = blake2b(run_id.encode(), digest_size=_KEY_BYTES, person=_PERSON).digest()
        self._curve = blake2b(run_id.encode(), digest_size=_KEY_BYTES, person=_CURVE_PERSON)

    def of(self, sender: int, receiver: int) -> bytes:
        """The password with which LP `sender` connects to LP `receiver`, 32 hexadecimal digits."""
        pair = f"LP {sender} -> LP {receiver}".encode()
        # A keyed hash: no password can be computed from another.
        code = blake2b(pair, key=self._key, digest_size=_PASSWORD_BYTES, person=_PERSON)
        return code.hexdigest().encode()

    @property
    def curve_secret(self) -> bytes:
        """The secret key of CURVE for both ends of every tcp connection, 40 digits of Z85.

        One pair is enough: a process with the id of the run can compute it, and no other.
        """
        key = bytearray(self._curve.digest())
        # RFC 7748, section 5: a multiple of 8 (the cofactor) between 2^254 and 2^255.
        key[0] &= 248
        key[31] = key[31] & 127 | 64
        return z85(bytes(key))


def z85(data: bytes) -> bytes:
    """`data`, of which four bytes become five digits (ZeroMQ RFC 32)."""
    digits = bytearray()
    for begin in range(0, len(data), 4):
        value = int.from_bytes(data[begin : begin + 4], "big")
        digits += bytes(_Z85[value // 85**power % 85] for power in (4, 3, 2, 1, 0))
    return bytes(digits)
