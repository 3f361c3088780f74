"""An event of the Trace Event Format."""

from msgspec import Struct, field

PS_PER_US = 1_000_000


class TraceEvent(Struct, frozen=True, omit_defaults=True):
    """An event; `ts` and `dur` are microseconds, as the format requires, with ps resolution."""

    name: str
    ph: str
    pid: int
    tid: int
    ts: float | None = None
    dur: float | None = None
    cat: str = ""
    bind_id: str = ""
    flow_out: bool = False
    flow_in: bool = False
    args: dict[str, str | int] = field(default_factory=dict[str, str | int])
