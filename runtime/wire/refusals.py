"""Counts what a socket has refused, by reason, with the addresses of the strangers.

A stranger decides how often it comes, from where and with what, so all of it is bounded.
"""

from collections.abc import Mapping

from runtime.wire.control import Refused

_KINDS = 16
"""Reasons that are kept; a stranger can send a different one each time."""
_ADDRESSES = 16
"""Addresses that are kept for a reason; the type of the field takes no more."""
_LONGEST_REASON = 120
"""A reason repeats what the stranger has sent."""
_OTHERS = "other reasons"


class Refusals:
    """Counters of the refused messages and connections of strangers, by reason."""

    def __init__(self) -> None:
        self._times: dict[str, int] = {}
        # By reason and host, the first address there: every connection has another port.
        self._addresses: dict[str, dict[str, str]] = {}

    @property
    def times(self) -> Mapping[str, int]:
        """The number of refusals by reason, in the order in which the reasons came first."""
        return self._times

    @property
    def refused(self) -> tuple[Refused, ...]:
        """The refusals by reason, with the first addresses of each. Any thread may read it."""
        # A copy of a dict is one step of the interpreter: no thread adds to it meanwhile.
        return tuple(
            Refused(reason, times, tuple(self._addresses[reason].values()))
            for reason, times in self._times.copy().items()
        )

    def add(self, reason: str, address: str = "") -> None:
        """Count a refusal of a process at `address`; empty for an unknown one."""
        kind = printable(reason)
        if kind not in self._times and len(self._times) >= _KINDS:
            kind = _OTHERS
        addresses = self._addresses.setdefault(kind, {})
        if address and len(addresses) < _ADDRESSES:
            addresses.setdefault(host_of(address), address)
        self._times[kind] = self._times.get(kind, 0) + 1


def host_of(address: str) -> str:
    """The host of `10.0.0.9:51122` or `[fd00::2]:51122`, in brackets too; else the whole text."""
    host, colon, port = address.rpartition(":")
    is_port = bool(colon) and port.isdigit() and (":" not in host or host.endswith("]"))
    return host if is_port else address


def printable(reason: str) -> str:
    """A reason that cannot control the terminal of the user, nor fill it."""
    short = reason if len(reason) <= _LONGEST_REASON else f"{reason[:_LONGEST_REASON]} …"
    return "".join(character if character.isprintable() else "?" for character in short)
