"""Advises what to change in a program, or in the machine, so that a kernel takes less time.

`scope` selects launches of a run. Each rule of `rules` searches them for one kind of loss, such as
a PE with more work than the others, and returns a `Finding`: the time lost, its evidence, and what
to change. The time without the loss is that of a replay of the recorded steps, in which the steps
concerned take another time (`replay`).
"""
