"""The comparison of the code that the LPs of a run report."""

import pytest

from coordinator.watch.code import RunCode
from coordinator.watch.failure import CodeDiffersError
from runtime.core.code.imported_code import CodeFile
from runtime.wire.control import ModuleCode


def module(name: str, digest: str, folder: str = "/a") -> ModuleCode:
    return ModuleCode(module=name, file=f"{folder}/{name}.py", sha256=digest)


def run_code(*lps: list[ModuleCode], coordinator: dict[str, CodeFile] | None = None) -> RunCode:
    code = RunCode(coordinator or {})
    for lp, modules in enumerate(lps):
        code.add(lp, modules)
    return code


def hashes(code: RunCode) -> dict[str, str]:
    return {name: file.sha256 for name, file in code.files.items()}


def test_one_code_passes_in_any_order_and_from_any_folder():
    code = run_code(
        [module("x", "00"), module("y", "11")], [module("y", "11", "/b"), module("x", "00", "/b")]
    )
    code.check()
    code.check_start()
    assert hashes(code) == {"x": "00", "y": "11"}


def test_a_difference_names_both_lps_and_both_files():
    code = run_code([module("x", "00"), module("y", "11")], [], [module("y", "12", "/b")])
    with pytest.raises(CodeDiffersError) as caught:
        code.check()
    assert (
        str(caught.value)
        .splitlines()[0]
        .startswith("LP 0 and LP 2 differ in the code of module 'y' (/a/y.py): ")
    )
    assert str(caught.value).splitlines()[1:] == [
        "  LP 0 has /a/y.py (sha256 11)",
        "  LP 2 has /b/y.py (sha256 12)",
    ]


def test_an_lp_need_not_import_what_another_one_does():
    code = run_code([module("x", "00")], [module("y", "11")])
    code.check()
    assert hashes(code) == {"x": "00", "y": "11"}


def test_a_later_report_of_a_module_replaces_an_earlier_one():
    code = run_code([module("__main__", "00")], [module("__main__", "00")])
    code.add(0, [module("__main__", "01")])
    with pytest.raises(CodeDiffersError, match="LP 0 and LP 1"):
        code.check()
    code.add(1, [module("__main__", "01")])
    code.check()
    assert hashes(code) == {"__main__": "01"}


def test_a_file_that_is_edited_while_the_lps_start_is_found_though_they_agree():
    before = {"x": CodeFile("/a/x.py", "00"), "y": CodeFile("/other/y.py", "00")}
    code = run_code([module("x", "01"), module("y", "11")], [module("x", "01")], coordinator=before)
    code.check()
    with pytest.raises(CodeDiffersError, match=r"the coordinator and LP 0 .* 'x'"):
        code.check_start()


def test_the_coordinator_reads_its_own_modules():
    code = RunCode()
    code.add(0, [ModuleCode("coordinator.watch.code", RunCode.__init__.__code__.co_filename, "00")])
    with pytest.raises(CodeDiffersError, match=r"coordinator\.watch\.code"):
        code.check_start()
