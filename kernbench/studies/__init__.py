"""What studies share: worker processes, progress, the way round a simulation, and the look of their figures."""
