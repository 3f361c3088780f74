"""The colours of the page, chosen to be read on light and on dark ground.

Kinds of components have the colours of Okabe and Ito, which colour-blind readers distinguish.
"""

from collections.abc import Mapping, Sequence

from kernbench.explain.web.geometry import IO, M_CPU, PE, PORT, SLICE, SRAM

KINDS: Mapping[str, str] = {
    PE: "#0072B2",
    SRAM: "#009E73",
    M_CPU: "#CC79A7",
    PORT: "#E69F00",
    IO: "#D55E00",
    SLICE: "#56B4E9",
}
IDLE = "#8E979F"
"""A link without load, a wire, an outline."""
HIGHLIGHT = "#C517D6"
"""The critical path."""
_RAMP = ("#9CA6AE", "#5B9BD5", "#2F6FB7", "#E8A000", "#E4572E", "#B3001B")
_STEPS = 60


def load_palette() -> list[str]:
    """The colours of loads from 0 to 100 %: grey, blue, orange, red."""
    return [_between(_RAMP, step / (_STEPS - 1)) for step in range(_STEPS)]


def _between(ramp: Sequence[str], share: float) -> str:
    position = share * (len(ramp) - 1)
    low = min(int(position), len(ramp) - 2)
    pairs = zip(_rgb(ramp[low]), _rgb(ramp[low + 1]), strict=True)
    return "#" + "".join(f"{round(a + (b - a) * (position - low)):02X}" for a, b in pairs)


def _rgb(colour: str) -> list[int]:
    return [int(colour[first : first + 2], 16) for first in (1, 3, 5)]
