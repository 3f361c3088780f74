from tests.fidelity.service.receive_order import in_turn


def test_directions_are_taken_in_turn_while_they_have_messages():
    assert list(in_turn({"E": 1, "N": 3, "S": 2})) == ["E", "N", "S", "N", "S", "N"]
