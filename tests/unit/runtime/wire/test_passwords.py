"""The passwords with which LPs connect to each other."""

from runtime.wire.passwords import Passwords


def test_every_ordered_pair_of_every_run_has_a_password_of_its_own() -> None:
    made = {
        Passwords(run_id).of(sender, receiver)
        for run_id in ("one", "two", "0" * 256)
        for sender in range(12)
        for receiver in range(12)
    }
    assert len(made) == 3 * 12 * 12
    assert all(len(password) == 32 and b"one" not in password for password in made)


def test_both_ends_compute_the_same_password() -> None:
    assert Passwords("run").of(1, 0) == Passwords("run").of(1, 0)
