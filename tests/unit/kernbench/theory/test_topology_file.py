from importlib import import_module

from kernbench.oracle.theory.topology_file import TopologyFile


def test_the_import_path_of_before_gives_the_same_class():
    assert import_module("kernbench.theory.topology_file").TopologyFile is TopologyFile
