"""Strangers: processes that reach a socket of a run but do not belong to it. They are refused, and
the run goes on; at its end each kind of refusal is named once.
"""

from collections.abc import Iterable, Mapping, Sequence

from runtime.wire.control import Done, Refused
from runtime.wire.refusals import printable

_ADDRESSES_SHOWN = 3
"""Addresses of a reason in the text of a warning at most; `run.json` has the first 16."""

Strangers = Mapping[str, Sequence[Refused]]
"""The refusals at each socket, by its name."""


def strangers_of(done: Mapping[int, Done], refusals: Sequence[Refused]) -> Strangers:
    """The refusals at each socket: those of the LPs that have reported, and `refusals` of the
    coordinator. A socket without any is left out.
    """
    of_lps = {f"LP {lp}": [_printable(each) for each in done[lp].refused] for lp in sorted(done)}
    sockets = {"the coordinator": list(refusals)} | of_lps
    return {socket: refused for socket, refused in sockets.items() if refused}


def stranger_warnings(strangers: Strangers) -> list[str]:
    """A line for each socket that has refused strangers."""
    return [_warning(socket, refused) for socket, refused in strangers.items()]


def _warning(socket: str, refused: Iterable[Refused]) -> str:
    total = sum(each.times for each in refused)
    what = "connection" if socket.startswith("LP") else "message"
    kinds = "; ".join(f"{each.times} x {each.reason}{_origin(each)}" for each in refused)
    return (
        f"{socket} refused {total} {what}{'' if total == 1 else 's'} of processes that are not of "
        f"this run ({kinds}); the result is not affected"
    )


def _origin(refused: Refused) -> str:
    shown = refused.addresses[:_ADDRESSES_SHOWN]
    more = " and others" if len(refused.addresses) > len(shown) else ""
    return f" from {', '.join(shown)}{more}" if shown else ""


def _printable(refused: Refused) -> Refused:
    addresses = tuple(printable(address) for address in refused.addresses)
    return Refused(printable(refused.reason), refused.times, addresses)
