"""The priorities of events for the interpreter: see calendar.pyx."""

ARRIVALS_FIRST = -1
"""Before SimPy's URGENT (0): arrivals from other SIPs at t precede every local event at t."""
