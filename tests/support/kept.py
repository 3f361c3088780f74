"""Records that are kept to be entered again, and those that are entered."""

from collections.abc import Sequence
from typing import Any

import pytest

from runtime.core.compiled.choice import IS_COMPILED
from runtime.core.trace import OpRecord
from sip_node.chip.records.op_log import OpLog

if not IS_COMPILED:
    pytest.skip("the core in Python keeps no records", allow_module_level=True)

from sip_node.chip.records.kept.kept_records import KeptRecords


def kept(records: Sequence[OpRecord], begin_ps: int = 0, most_bytes: int = 1 << 20) -> KeptRecords:
    """Records of a launch that began at `begin_ps`."""
    log: Any = OpLog(None)
    made = KeptRecords(begin_ps, 0, most_bytes, has_waits=False)
    log.begin_keeping(made)
    for each in records:
        log.add(each)
    log.end_keeping(made)
    made.trim()
    return made


def entered(of: KeptRecords, begin_ps: int = 0) -> tuple[str, list[OpRecord]]:
    """The records that are entered of a launch that begins at `begin_ps`, and their digest."""
    log = OpLog(None)
    records = log.begin_recording()
    of.enter(log, 0, len(of), begin_ps, 0, None)
    return log.digest(()), records
