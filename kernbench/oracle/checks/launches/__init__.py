"""Groups l and m: launches, barriers and messages."""
