from dataclasses import dataclass

from runtime.ccl.references import referenced_modules


@dataclass(frozen=True)
class References:
    module: str
    topology: str = "ring_1d"
    mapper: str = "all_pes"
    validator: str = "any_placement"


def test_the_modules_of_algorithms_are_named_once_and_registry_keys_are_no_modules():
    algorithms = [
        References("own.ring", mapper="own.maps:snake"),
        References("own.tree", mapper="own.maps.snake", validator="own.rules:any"),
        References("own.ring"),
    ]
    assert referenced_modules(algorithms, []) == ("own.ring", "own.maps", "own.tree", "own.rules")


def test_the_modules_of_queue_tables_are_named_too():
    tables = [References("", topology="own.nets:star", mapper="own.maps:snake")]
    algorithms = [References("own.ring", mapper="own.maps:snake")]
    assert referenced_modules(algorithms, tables) == ("own.ring", "own.maps", "own.nets")
