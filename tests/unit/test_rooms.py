"""Rooms: a folder has one idea, so few files."""

from collections import Counter
from pathlib import Path

from tests.support.source import tracked_files

ROOT = Path(__file__).parents[2]
PACKAGES = ("runtime", "sip_node", "coordinator", "kernbench")
MOST_FILES = 25


def test_a_room_has_few_files():
    folders = Counter(path.parent.relative_to(ROOT) for path in tracked_files(ROOT))
    rooms = {each: n for each, n in folders.items() if each.parts and each.parts[0] in PACKAGES}
    assert len(rooms) > len(PACKAGES)
    assert {str(each): n for each, n in rooms.items() if n > MOST_FILES} == {}
