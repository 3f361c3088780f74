"""The mutants fit the code of today; `make mutants` runs them."""

from collections import Counter
from pathlib import Path

import pytest

from tests.fidelity.plan import every_part
from tests.mutants import ALL
from tests.mutants.key_reads import READS
from tests.mutants.mutant import Mutant
from tests.mutants.oracle import MORE
from tests.support.changed_keys import drawn_keys

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("mutant", ALL + READS + MORE, ids=lambda mutant: mutant.name)
def test_a_mutant_changes_its_file_to_other_valid_code(mutant: Mutant):
    edited = mutant.edited(ROOT)
    assert edited != (ROOT / mutant.file).read_text(encoding="utf-8")
    compile(edited, mutant.file, "exec")


def test_names_are_unique():
    assert [name for name, count in Counter(each.name for each in ALL).items() if count > 1] == []


def test_the_expected_checks_exist():
    every = every_part(1)
    assert [
        mutant.name
        for mutant in ALL
        if not mutant.is_noticed_by_test
        and not any(part.may_match(mutant.noticed_by) for part in every)
    ] == []


def test_the_expected_tests_exist():
    def exists(test: str) -> bool:
        file, _, name = test.partition("::")
        path = ROOT / file
        return path.is_file() and f"def {name}" in path.read_text(encoding="utf-8")

    tests = {mutant.noticed_by for mutant in ALL if mutant.is_noticed_by_test}
    assert [test for test in sorted(tests) if not exists(test)] == []


def test_the_keys_of_deleted_reads_are_changed_by_the_comparison_of_both_cores():
    assert {mutant.noticed_by for mutant in READS} <= set(drawn_keys())


def test_only_timing_code_is_edited():
    rooms = (
        "sip_node/chip/",
        "sip_node/kernel/",
        "sip_node/programs/",
        "runtime/model/",
        "runtime/language/",
    )
    clocks = ("sip_node/pdes/inbox.py", "runtime/core/simtime.py")
    assert [mutant.name for mutant in ALL if not mutant.file.startswith((*rooms, *clocks))] == []
