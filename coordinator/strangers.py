"""Strangers: processes that reach a socket of a run but do not belong to it. They are refused, and
the run goes on; at its end each kind of refusal is named once.
"""

from collections.abc import Mapping

from runtime.wire.control import Done

_KINDS = 16
"""Reasons that are kept; a stranger can send a different one each time."""
_LONGEST_REASON = 120
"""A reason repeats what the stranger has sent."""
_OTHERS = "other reasons"


class Refusals:
    """How many messages of strangers were refused, by reason."""

    def __init__(self) -> None:
        self._times: dict[str, int] = {}

    @property
    def times(self) -> Mapping[str, int]:
        """The number of messages by reason, in the order in which the reasons came first."""
        return self._times

    def add(self, reason: str) -> None:
        """Count a refusal."""
        kind = _printable(reason)
        if kind not in self._times and len(self._times) >= _KINDS:
            kind = _OTHERS
        self._times[kind] = self._times.get(kind, 0) + 1


def strangers_of(
    done: Mapping[int, Done], refusals: Mapping[str, int]
) -> dict[str, dict[str, int]]:
    """The refusals at each socket, by reason: those of the LPs that have reported, and
    `refusals` of the coordinator. A socket without any is left out.
    """
    of_lps = {
        f"LP {lp}": {_printable(each.reason): each.times for each in done[lp].refused}
        for lp in sorted(done)
    }
    sockets = {"the coordinator": dict(refusals)} | of_lps
    return {socket: reasons for socket, reasons in sockets.items() if reasons}


def stranger_warnings(strangers: Mapping[str, Mapping[str, int]]) -> list[str]:
    """A line for each socket that has refused strangers."""
    return [_warning(socket, reasons) for socket, reasons in strangers.items()]


def _warning(socket: str, reasons: Mapping[str, int]) -> str:
    total = sum(reasons.values())
    what = "connection" if socket.startswith("LP") else "message"
    kinds = "; ".join(f"{times} x {reason}" for reason, times in reasons.items())
    return (
        f"{socket} refused {total} {what}{'' if total == 1 else 's'} of processes that are not of "
        f"this run ({kinds}); the result is not affected"
    )


def _printable(reason: str) -> str:
    # What a stranger sends must not control the terminal of the user.
    short = reason if len(reason) <= _LONGEST_REASON else f"{reason[:_LONGEST_REASON]} …"
    return "".join(character if character.isprintable() else "?" for character in short)
