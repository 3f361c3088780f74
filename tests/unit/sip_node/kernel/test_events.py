"""A rank among the events of one time, which stands in both versions of `events`."""

import re
from pathlib import Path

from sip_node.kernel import events


def test_both_versions_have_one_rank_behind_all_other_events() -> None:
    in_c = Path(events.__file__).with_suffix(".pxd").read_text("utf-8")
    interpreted = Path(events.__file__).with_suffix(".py").read_text("utf-8")
    ranks = re.findall(r"AFTER_ALL = (\d+)$", in_c + "\n" + interpreted, re.MULTILINE)
    assert ranks == ["2", "2"]
