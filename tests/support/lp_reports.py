"""The report of an LP at its end, with what a test needs of it."""

from typing import Any

from runtime.wire.control import Done
from runtime.wire.reports import SipReport


def done_of(lp: int, *sips: SipReport, **values: Any) -> Done:
    """The `Done` of an LP with the reports of its SIPs; other values are 0 unless given."""
    counts = dict.fromkeys(("events", "rounds", "messages", "null_messages"), 0)
    times = {"blocked_s": 0.0, "busy_s": 0.0}
    return Done(lp=lp, sips=sips, **(counts | times | values))
