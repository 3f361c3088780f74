"""Directions of a queue pair and who pairs with whom. What leaves by `E` arrives by the peer's `W`."""

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
