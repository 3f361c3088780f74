"""Each study is declared once, with a help text for each flag; its class is imported to run it."""

from kernbench.studies.catalogue import STUDIES, KvFlags, study_class
from kernbench.studies.parameter_study import ParameterStudy
from runtime.core.bench_registry import Study, registered


def _declared() -> list[Study]:
    return [entry for entry in registered() if isinstance(entry, Study) and entry.flags]


def test_every_flag_has_a_help_text():
    assert [flag for study in _declared() for flag in study.flags if not flag.help] == []


def test_the_flags_of_a_study_are_the_fields_of_a_class():
    [study] = [each for each in _declared() if each.name == "kv-transfer"]
    assert {flag.name: flag.default for flag in study.flags} == vars(KvFlags())
    assert {flag.option: flag.kind for flag in study.flags}["--new-tokens"] is int


def test_every_class_of_the_catalogue_is_a_study():
    assert all(issubclass(study_class(flags), ParameterStudy) for flags in STUDIES)
