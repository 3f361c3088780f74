"""The trips between hosts behind the present of an LP."""

from sip_node.pdes.sync import Trips


def test_an_lp_that_was_blocked_takes_over_the_count_of_what_woke_it():
    trips = Trips()
    trips.waited = True
    trips.polled(7)
    assert trips.count == 7
    # Contents that come while it computes are not what it has waited for.
    trips.polled(9)
    assert trips.count == 7


def test_a_wait_that_ends_without_contents_changes_nothing():
    trips = Trips()
    trips.waited = True
    trips.polled(-1)
    trips.polled(9)
    assert trips.count == 0


def test_the_chain_goes_through_the_sender_even_if_that_has_fewer_trips():
    trips = Trips()
    trips.waited = True
    trips.polled(7)
    trips.waited = True
    trips.polled(3)
    assert trips.count == 3
