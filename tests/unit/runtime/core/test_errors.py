"""The names that an error suggests for a wrong one."""

from runtime.core.errors import nearest


def test_a_similar_name_is_suggested():
    assert nearest("ucie.bw_gb", ["hbm.num_pcs", "ucie.bw_gbs"]) == "; did you mean 'ucie.bw_gbs'?"


def test_all_names_are_listed_where_none_is_similar():
    assert nearest("x", ["ring", "mesh"]) == "; known: mesh, ring"
    assert nearest("x", []) == ""


def test_of_many_dotted_names_the_first_parts_are_listed():
    keys = [f"{part}.key{number}" for part in ("cube", "hbm") for number in range(40)]
    assert nearest("zzz", [*keys, "size"]) == "; known: cube.*, hbm.*, size"
    assert nearest("zzz", keys[:3]) == "; known: cube.key0, cube.key1, cube.key2"
