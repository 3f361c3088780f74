"""Faults of the rows of several studies, each as a sentence, and numbers of SIPs."""

from collections.abc import Iterator


def wrong_count(count: int | None) -> Iterator[str]:
    """A fault if elements of a result are wrong; None is a run without data."""
    if count:
        yield f"{count:,} elements are wrong"


def wrong_by(error: float | None, tolerance: float, what: str = "") -> Iterator[str]:
    """A fault if `error`, in the unit of `tolerance`, exceeds it; None is a run without data.

    `what` names the result, if the row has several.
    """
    # Not `error > tolerance`: a NaN in the result is a fault.
    if error is not None and not error <= tolerance:
        yield f"wrong by {error:.3g}{what and f' ({what})'}, {tolerance:g} are allowed"


def below_bound(time_ps: int, bound_ps: float, what: str = "") -> Iterator[str]:
    """A fault if a time is below its lower bound: an error in the model or in the bound.

    `what` names the time, if the row has several.
    """
    if time_ps < bound_ps:
        yield f"{what and f'{what}: '}{time_ps:,} ps are less than the bound of {bound_ps:,.0f} ps"


def sip_count(count: int) -> str:
    """`1 SIP`, `2 SIPs`."""
    return "1 SIP" if count == 1 else f"{count} SIPs"
