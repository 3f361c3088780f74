"""The peers of connections by their open files, on real sockets."""

import os
import socket
from contextlib import suppress
from pathlib import Path
from select import select

from runtime.wire.socket_file import CLOSED, SILENT, admit, end_of, hold_back, unix_peer


def test_the_peer_of_a_tcp_connection_has_an_address_and_a_port():
    for host, shown in (("127.0.0.1", "127.0.0.1"), ("::1", "[::1]")):
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        with socket.create_server((host, 0), family=family) as server:
            port = server.getsockname()[1]
            with socket.create_connection((host, port)) as client:
                accepted, _ = server.accept()
                with accepted:
                    address = admit(accepted.fileno(), f"tcp://{shown}:{port}")
                    assert address == f"{shown}:{client.getsockname()[1]}"
                    # Not a connection of this endpoint: the number of the file was used again.
                    assert admit(accepted.fileno(), "tcp://127.0.0.1:1") == ""


def test_the_peer_of_an_ipc_connection_is_a_process(tmp_path: Path):
    path = str(tmp_path / "s")
    with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as client:
        server.bind(path)
        server.listen()
        client.connect(path)
        accepted, _ = server.accept()
        with accepted:
            own = f"pid {os.getpid()} (uid {os.getuid()})"
            assert admit(accepted.fileno(), f"ipc://{path}") == own
            assert unix_peer(f"localhost:{os.getuid()}:0:{os.getpid()}") == own
            assert admit(accepted.fileno(), "ipc://other") == ""


def test_a_file_that_is_closed_or_no_socket_has_no_peer(tmp_path: Path):
    file = os.open(tmp_path, os.O_RDONLY)
    assert admit(file, "tcp://127.0.0.1:1") == ""
    os.close(file)
    assert admit(file, "tcp://127.0.0.1:1") == ""


def test_a_connection_that_the_peer_has_not_closed_has_ended_in_silence():
    with socket.create_server(("127.0.0.1", 0)) as server:
        client = socket.create_connection(server.getsockname())
        accepted, _ = server.accept()
        with accepted:
            assert end_of(accepted) == SILENT
            client.close()
            assert accepted.recv(1) == b""
            assert end_of(accepted) == CLOSED
    assert end_of(None) == CLOSED


def test_a_connection_is_not_readable_before_it_is_admitted():
    with socket.create_server(("127.0.0.1", 0)) as server:
        hold_back(server.fileno())
        port = server.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)) as client:
            client.sendall(b"GET / HTTP/1.1")
            accepted, _ = server.accept()
            with accepted:
                assert not select([accepted], (), (), 0.01)[0]
                assert admit(accepted.fileno(), f"tcp://127.0.0.1:{port}")
                assert select([accepted], (), (), 10)[0]
                assert accepted.recv(100) == b"GET / HTTP/1.1"


def test_data_that_does_not_begin_as_zmtp_arrives_after_the_admission_only():
    with socket.create_server(("127.0.0.1", 0)) as server:
        hold_back(server.fileno())
        port = server.getsockname()[1]
        for first, is_held in ((b"GET / HTTP/1.1", True), (b"\xff" + bytes(9), False)):
            with socket.create_connection(("127.0.0.1", port)) as client:
                client.sendall(first)
                accepted, _ = server.accept()
                with accepted:
                    accepted.setblocking(False)
                    assert unread(accepted) == (b"" if is_held else first)
                    assert admit(accepted.fileno(), f"tcp://127.0.0.1:{port}")
                    accepted.settimeout(10)
                    assert accepted.recv(100) == first


def unread(connection: socket.socket) -> bytes:
    """Bytes that have arrived, as ZeroMQ would read them when it accepts a connection."""
    with suppress(BlockingIOError):
        return connection.recv(100, socket.MSG_PEEK)
    return b""
