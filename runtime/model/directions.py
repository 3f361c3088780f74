"""Directions of queue pairs: what leaves by direction `E` arrives at the peer by direction `W`."""

OPPOSITE = {
    "E": "W",
    "W": "E",
    "N": "S",
    "S": "N",
    "global_E": "global_W",
    "global_W": "global_E",
    "global_N": "global_S",
    "global_S": "global_N",
}
