"""Clients that send or read slowly block neither other clients nor the server's shutdown."""

import gzip
import http.client
import json
import socket
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from flagadmin.core.db.bundled.cluster import Cluster
from flagadmin.core.server.slow_clients import drop_stalled_readers
from tests.support.live_server import PATIENCE, Client, descendants, held_sockets, reserved_port
from tests.support.serve import serve, wait_until_it_answers
from tests.support.served import ADMIN as KEY
from tests.support.served import Served

pytestmark = pytest.mark.processes

HALVES = {
    "body": b"POST /api/admin/playground HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n{ ",
    "chunked body": b"POST /login/ HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{ \r\n",
    "large body": b"POST /api/admin/features-batch/import HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2000000\r\n"
    + f"Authorization: {KEY}\r\n\r\n{{".encode(),
    "headers": b"GET /healthz HTTP/1.1\r\nHost: loc",
    "nothing": b"",
}
QUESTION = {"environment": "production", "context": {}}
HELD = 200  # more than all threads of all workers


@pytest.fixture
def server(served: Served) -> int:
    """Its port."""
    return served.port


@pytest.mark.parametrize("half", HALVES)
def test_others_are_answered(server: int, half: str) -> None:
    def answered_before_they_are_over() -> bool:
        with held_sockets(server, HELD, HALVES[half]) as held:
            for _ in range(3):
                with closing(Client(server, KEY)) as client:
                    assert client.call("GET", "/healthz")[0] == 200
                    assert client.call("POST", "/api/admin/playground", QUESTION)[0] == 200
            return not any(is_over(connection) for connection in held)

    # A client that waited for a thread would always wait until the deadline of those who hold them is over; on a
    # machine that stalls, it may pass meanwhile.
    assert any(answered_before_they_are_over() for _ in range(5))


def test_a_strangers_large_body_is_not_waited_for(server: int) -> None:
    with closing(Client(server)) as client:
        client._connection.putrequest("POST", "/api/admin/features-batch/import")
        client._connection.putheader("Content-Length", "60000000")
        client._connection.endheaders()
        response = client._connection.getresponse()
        assert (response.status, json.loads(response.read())["name"]) == (401, "AuthenticationRequired")


def is_over(connection: socket.socket) -> bool:
    """It was answered or closed."""
    connection.setblocking(False)
    try:
        connection.recv(1)
    except BlockingIOError:
        return False
    return True


def import_large_flags(port: int, count: int, payload: int) -> None:
    """Their answer for SDKs has more than ``count * payload`` bytes."""
    variants = [
        {
            "name": "v",
            "weight": 1000,
            "weightType": "variable",
            "stickiness": "default",
            "payload": {"type": "string", "value": "x" * payload},
        }
    ]
    names = [f"large-{number}" for number in range(count)]
    data = {
        "features": [{"name": name, "type": "release"} for name in names],
        "featureStrategies": [],
        "tagTypes": [],
        "featureEnvironments": [
            {"name": name, "environment": "production", "enabled": True, "variants": variants}
            for name in names
        ],
    }
    body = {"project": "default", "environment": "production", "data": data}
    with closing(Client(port, KEY)) as client:
        status, answer = client.call("POST", "/api/admin/features-batch/import", body)
        assert status == 200, answer[:1000]


def memory_of_workers(server: int) -> int:
    """In bytes."""
    statuses = [Path(f"/proc/{pid}/status").read_text() for pid in descendants(b"flagadmin-work", server)]
    return sum(int(status.partition("VmRSS:")[2].split()[0]) << 10 for status in statuses)


def test_clients_that_do_not_read_share_large_answers_and_none_delays_stopping(
    tmp_path: Path, install: Callable[[Path], None]
) -> None:
    install(data_dir := tmp_path / "data")
    clients, token = 20, "default:production.unsafe-for-this-test-alone"
    with (
        reserved_port() as port,
        serve(data_dir, port, workers=1, INIT_ADMIN_API_TOKENS=KEY, INIT_CLIENT_API_TOKENS=token) as process,
        ExitStack() as stack,
    ):
        wait_until_it_answers(port, process)
        import_large_flags(port, 130, 100_000)
        reader = stack.enter_context(closing(Client(port, token)))
        expected = reader.call("GET", "/api/client/features")[1]
        assert len(expected) > 12_000_000
        assert reader.call("HEAD", "/api/client/features") == (200, b"")
        before = memory_of_workers(process.pid)
        request = f"GET /api/client/features HTTP/1.1\r\nHost: localhost\r\nAuthorization: {token}\r\n\r\n"
        held = stack.enter_context(held_sockets(port, clients, request.encode()))
        assert reader.call("GET", "/api/client/features")[1] == expected, "who reads is not kept waiting"
        assert memory_of_workers(process.pid) - before < clients * len(expected) / 4
        for connection in held:
            response = http.client.HTTPResponse(connection)
            response.begin()
            assert response.read() == expected
        for connection in stack.enter_context(held_sockets(port, 5, request.encode())):
            assert connection.recv(1)
        for half in HALVES.values():
            stack.enter_context(held_sockets(port, 20, half))
        process.terminate()
        said, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, said
    assert "still running" not in said, "clients that do not read or send delay stopping"
    Cluster(data_dir, durable=False).stop()


def chunked(port: int, path: str, *chunks: bytes, **headers: str) -> tuple[int, dict[str, object]]:
    with closing(http.client.HTTPConnection("127.0.0.1", port)) as connection:
        sent = {"Authorization": KEY, "Content-Type": "application/json"} | headers
        connection.request("POST", path, iter(chunks), sent, encode_chunked=True)
        response = connection.getresponse()
        return response.status, json.loads(response.read())


def test_a_chunked_body_is_accepted(server: int) -> None:
    body = json.dumps(QUESTION).encode()
    assert chunked(server, "/api/admin/playground", body[:5], body[5:])[0] == 200


def test_a_compressed_chunked_body_is_accepted(server: int) -> None:
    packed = gzip.compress(json.dumps(QUESTION).encode())
    assert chunked(server, "/api/admin/playground", packed, **{"Content-Encoding": "gzip"})[0] == 200


def test_a_packed_body_that_is_too_large_inside(server: int) -> None:
    packed = gzip.compress(b" " * 1_000_001)
    status, record = chunked(server, "/api/admin/playground", packed, **{"Content-Encoding": "gzip"})
    assert (status, record["name"]) == (413, "PayloadTooLargeError")


def test_a_file_that_is_too_large_is_refused_with_a_page(server: int) -> None:
    with closing(http.client.HTTPConnection("127.0.0.1", server)) as connection:
        connection.putrequest("POST", "/import/")
        connection.putheader("Content-Length", "70000000")
        connection.endheaders()
        answer = connection.getresponse()
        page = answer.read().decode()
    assert (answer.status, answer.headers["Connection"]) == (413, "close")
    assert "The body is larger than the 64 MB accepted here." in page
    assert "</html>" in page
    assert "Content-Security-Policy" in answer.headers


def test_a_body_that_is_too_large(server: int) -> None:
    """Refused by its declared length: the answer does not wait for the body."""
    with closing(http.client.HTTPConnection("127.0.0.1", server)) as connection:
        connection.putrequest("POST", "/api/admin/playground")
        connection.putheader("Authorization", KEY)
        connection.putheader("Content-Length", "1000001")
        connection.endheaders()
        answer = connection.getresponse()
        assert (answer.status, json.loads(answer.read())["name"]) == (413, "PayloadTooLargeError")


def test_a_header_with_an_underscore_does_not_pass_for_another(server: int) -> None:
    """Django reads X-Request-Id; what a proxy does not know to replace must not become it."""
    with closing(http.client.HTTPConnection("127.0.0.1", server)) as connection:
        connection.request("GET", "/healthz", headers={"X_Request_Id": "forged-request-id"})
        answer = connection.getresponse()
        assert answer.headers["X-Request-Id"] != "forged-request-id"


def test_connections_whose_client_does_not_read_are_closed() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        assert drop_stalled_readers()
        with socket.create_connection(listener.getsockname()), listener.accept()[0] as accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 30_000
