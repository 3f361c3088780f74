"""Every closed-form and reference check of the model in one command: `kernbench validate`."""
