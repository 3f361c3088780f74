"""The passwords with which LPs connect to each other."""

import zmq.utils.z85

from runtime.wire.passwords import Passwords, z85


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


def test_every_run_has_a_secret_key_of_x25519_which_is_not_its_passwords_key() -> None:
    for run_id in ("one", "two"):
        secret = zmq.utils.z85.decode(Passwords(run_id).curve_secret)
        # RFC 7748, section 5.
        assert secret[0] % 8 == 0
        assert secret[31] >> 6 == 1
        assert secret[8:24] not in Passwords(run_id)._key
    assert Passwords("one").curve_secret != Passwords("two").curve_secret
    assert Passwords("one").curve_secret == Passwords("one").curve_secret


def test_the_digits_of_z85_are_those_of_its_specification() -> None:
    # The test case of ZeroMQ RFC 32.
    assert z85(bytes.fromhex("864FD26FB559F75B")) == b"HelloWorld"
