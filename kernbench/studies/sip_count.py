"""A number of SIPs in words."""


def sip_count(count: int) -> str:
    """`1 SIP`, `2 SIPs`."""
    return "1 SIP" if count == 1 else f"{count} SIPs"
