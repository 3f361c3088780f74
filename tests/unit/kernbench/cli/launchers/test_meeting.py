"""The address of the coordinator follows from the secret, the launcher and the options."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from kernbench.cli.launchers.meeting import Meeting, MeetingOptions, Store, meeting_of
from kernbench.cli.launchers.place import Place
from runtime.core.errors import UsageError

SECRET = {"KERNBENCH_SECRET": "sixteen bytes and more"}
LOCAL = MeetingOptions(master="127.0.0.1:29400")


class Shelf:
    """A store with what has been set."""

    def __init__(self) -> None:
        self.values: dict[str, str] = {}

    def set(self, key: str, value: str, /) -> None:
        self.values[key] = value

    def get(self, key: str, /) -> bytes:
        return self.values[key].encode()


@pytest.fixture(autouse=True)
def _temporary(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path_factory.mktemp("t")))


@pytest.fixture
def meetings() -> Iterator[list[Meeting]]:
    """Meetings whose directories are left at the end."""
    found: list[Meeting] = []
    yield found
    for meeting in found:
        if meeting.joined is not None:
            meeting.joined.leave()


def by_hand(rank: int, world_size: int = 2) -> Place:
    return Place("by hand", rank, world_size, "")


def meet(
    place: Place,
    options: MeetingOptions = LOCAL,
    environment: dict[str, str] = SECRET,
    store: Store | None = None,
) -> Meeting:
    return meeting_of(place, options, environment, lambda: store or Shelf())


def test_without_a_secret_processes_meet_in_a_private_directory_and_nothing_listens(
    meetings: list[Meeting],
):
    meetings += [meet(by_hand(rank), environment={}) for rank in (1, 0)]
    first, second = meetings
    assert first.control == second.control
    assert first.control == f"ipc://{first.directory}/control.sock"
    assert (first.listen, second.listen) == ("", "")
    assert first.run_id == second.run_id
    assert first.directory.stat().st_mode & 0o777 == 0o700
    meetings.append(meet(by_hand(0), MeetingOptions(master="127.0.0.1:1"), {}))
    assert meetings[-1].run_id != first.run_id


def test_the_last_process_that_leaves_removes_the_directory():
    first, second = (meet(by_hand(rank), environment={}) for rank in (0, 1))
    assert first.joined is not None
    assert second.joined is not None
    first.joined.leave()
    assert second.directory.exists()
    second.joined.leave()
    assert not second.directory.exists()


def test_two_runs_with_one_master_on_a_host_are_refused(meetings: list[Meeting]):
    meetings.append(meet(by_hand(0), environment={}))
    with pytest.raises(UsageError, match="another run on this host has the master"):
        meet(by_hand(0), environment={})


def test_with_a_secret_all_have_the_endpoint_and_derive_one_id():
    first, second = meet(by_hand(0)), meet(by_hand(1))
    assert first.control == second.control == "tcp://127.0.0.1:29400"
    assert first.run_id == second.run_id
    assert first.listen == second.listen == "127.0.0.1"
    assert first.run_id != meet(by_hand(0, world_size=3)).run_id
    assert not first.directory.exists()


def test_workers_of_torchrun_meet_by_its_store_in_which_no_secret_is():
    shelf = Shelf()
    variables = SECRET | {"MASTER_ADDR": "127.0.0.1"}
    places = [Place("torchrun", rank, 2, "job", 1) for rank in range(2)]
    first = meet(places[0], MeetingOptions(), variables, shelf)
    assert first.control == "tcp://127.0.0.1:*"
    first.publish("tcp://127.0.0.1:4711")
    second = meet(places[1], MeetingOptions(), variables, shelf)
    assert second.control == "tcp://127.0.0.1:4711"
    assert second.run_id == first.run_id
    assert first.run_id not in "".join(shelf.values.values())


def test_the_variables_of_slurm_have_the_address_of_the_master():
    variables = SECRET | {
        "SLURM_JOB_ID": "17",
        "SLURM_STEP_NODELIST": "localhost,other[1-3]",
    }
    meeting = meet(Place("Slurm", 0, 2, "17\n", 0), MeetingOptions(bind="127.0.0.1"), variables)
    assert meeting.control == "tcp://127.0.0.1:20017"


@pytest.mark.parametrize(
    ("place", "options", "environment", "line"),
    [
        (by_hand(0), MeetingOptions(), {}, "--rank and --world need --master HOST:PORT"),
        (by_hand(0), MeetingOptions(), SECRET, "where is the process of rank 0"),
        (by_hand(0), MeetingOptions("192.0.2.1:1"), {}, "can be reached from other hosts.*secret"),
        (by_hand(0), MeetingOptions("192.0.2.1:1"), SECRET, "no address of this host"),
        (by_hand(0), MeetingOptions("127.0.0.1:1", "10.0.0.1"), {}, "without a secret: nothing"),
        (Place("torchrun", 0, 4, "", 2), MeetingOptions(), {}, "torchrun starts processes on sev"),
        (by_hand(0), MeetingOptions("x"), SECRET, "--master: expected HOST:PORT"),
        (by_hand(0), MeetingOptions(), {"KERNBENCH_MASTER": "x"}, "KERNBENCH_MASTER: expected"),
    ],
)
def test_what_cannot_meet_is_one_line(
    place: Place, options: MeetingOptions, environment: dict[str, str], line: str
):
    with pytest.raises(UsageError, match=line):
        meet(place, options, environment)


def test_a_secret_that_others_can_read_is_refused(tmp_path: Path):
    file = tmp_path / "secret"
    file.write_text("sixteen bytes and more")
    file.chmod(0o644)
    options = MeetingOptions("127.0.0.1:29400", secret_file=file)
    with pytest.raises(UsageError, match="has mode 0644"):
        meet(by_hand(0), options, {})
