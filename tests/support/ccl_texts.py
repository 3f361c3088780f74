"""The parts of a small `ccl.yaml`, as text."""

DEFAULTS = """
defaults:
  algorithm: ring
  buffer_kind: tcm
  backpressure: sleep
  n_slots: 4
  slot_size: 4096
  vc_chunk_size: 256
  ipcq_credit_size_bytes: 16
"""
RING = """
algorithms:
  ring:
    module: runtime.ccl.algorithms.ring
    topology: ring_1d
    mapper: all_pes
    validator: any_placement
"""
