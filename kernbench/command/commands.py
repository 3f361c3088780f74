"""The names of the commands of `kernbench`."""

COMMANDS = (
    "run",
    "node",
    "list",
    "probe",
    "validate",
    "perf",
    "sweep",
    "trace",
    "why",
    "check",
    "web",
    "runs",
    "keys",
)
DEFAULT_COMMAND = "run"
"""The command of a line that names none."""
