"""Receivers that harm: what they answer, how slowly, and where their names lead."""

import socket
import threading
import time
from contextlib import suppress

import pytest

from flagadmin.core.http.outside import Refused
from integrations.deliveries import connections, sender
from integrations.deliveries.connections import Connection, overdue
from integrations.models import Delivery
from integrations.providers import Provider
from projects.flags.actions import NewFlag, create_flag
from tests.support.live_server import PATIENCE
from tests.support.receiver import deliver, make_integration, receiver

__all__ = ["receiver"]
State = Delivery.State


@pytest.fixture
def raw():
    """Starts a server that hands each connection to a function."""
    servers = []

    def start(answer):
        server = socket.create_server(("127.0.0.1", 0))
        servers.append(server)

        def serve():
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                threading.Thread(target=answer, args=(connection,), daemon=True).start()

        threading.Thread(target=serve, daemon=True).start()
        return f"http://127.0.0.1:{server.getsockname()[1]}/hook"

    yield start
    for server in servers:
        server.close()


def read_request(connection):
    """Reads to the end of the body, which arrives after the headers."""
    received = b""
    while not received.endswith(b"{}"):
        received += connection.recv(65_536)


@pytest.fixture
def allowed(settings, receiver):
    """The loopback network may be sent to."""


def test_of_an_endless_answer_only_the_beginning_is_read(raw, allowed):
    written = []

    def answer(connection):
        read_request(connection)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n")
        with suppress(OSError):
            written.extend(connection.send(b"x" * 1_000_000) for _ in range(1000))

    reply = Connection().post(raw(answer), b"{}", {})
    assert (reply.status, len(reply.text)) == (200, connections.MAX_ANSWER)
    assert sum(written) < 50_000_000


@pytest.mark.parametrize(
    "beginning", ["", "HTTP/1.1 200 OK\r\nX: ", "HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n"]
)
def test_one_byte_a_second_is_ended_in_time(raw, allowed, beginning):
    """It would be sent again without a status; with one, the receiver has the event."""
    slow, end = threading.Event(), threading.Event()

    def answer(connection):
        read_request(connection)
        connection.sendall(beginning.encode())
        slow.set()
        with suppress(OSError):
            while not end.wait(0.05):
                connection.send(b"x")
        connection.close()

    def end_overdue():
        assert slow.wait(PATIENCE)
        overdue.end(time.monotonic() + connections.TIMEOUT)

    ending = threading.Thread(target=end_overdue)
    ending.start()
    receiver = Connection()
    if beginning:
        assert receiver.post(raw(answer), b"{}", {}).status == 200
    else:
        with pytest.raises((OSError, connections.http.client.HTTPException)):
            receiver.post(raw(answer), b"{}", {})
    end.set()
    ending.join()
    receiver.close()


def test_what_closes_without_an_answer_or_answers_nonsense_is_tried_again(raw, allowed, db):
    def close(connection):
        read_request(connection)
        connection.close()

    def nonsense(connection):
        read_request(connection)
        connection.sendall(b"SSH-2.0-OpenSSH\r\n")
        connection.close()

    for answer in (close, nonsense):
        with pytest.raises((OSError, connections.http.client.HTTPException)):
            Connection().post(raw(answer), b"{}", {})


@pytest.mark.parametrize(
    "host",
    [
        "0177.0.0.1",
        "2130706433",
        "0x7f.1",
        "127.1",
        "0",
        "[::]",
        "[::ffff:127.0.0.1]",
        "[::127.0.0.1]",
        "[64:ff9b:1::7f00:1]",
        "[2002:7f00:1::]",
        "[fe80::1]",
        "[fd00::1]",
        "[fec0::1]",
        "10.1.2.3",
        "100.64.0.1",
        "172.16.0.1",
        "192.168.0.1",
        "169.254.169.254",
        "[fd00:ec2::254]",
        "224.0.0.1",
        "255.255.255.255",
        "198.18.0.1",
    ],
)
def test_private_addresses_however_they_are_written(settings, host):
    settings.INTEGRATION_NETWORKS = []
    with pytest.raises((Refused, OSError)) as refused:
        Connection().post(f"https://{host}/", b"{}", {})
    assert isinstance(refused.value, Refused) or "Name or service" in str(refused.value), refused.value


@pytest.mark.parametrize("host", ["a..example", f"{'a' * 64}.example"])
def test_what_is_no_name_of_a_host_is_refused(host):
    with pytest.raises(Refused, match="is not a valid host name"):
        Connection().post(f"https://{host}/", b"{}", {})


def test_all_addresses_of_a_name_share_the_time_of_one(settings, monkeypatch):
    settings.INTEGRATION_NETWORKS = []
    waited = []
    addresses = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (f"203.0.114.{n}", 443)) for n in range(1, 91)]

    def connect(self, address):
        waited.append(self.gettimeout())
        raise TimeoutError("timed out")

    monkeypatch.setattr(connections.socket, "getaddrinfo", lambda *args, **options: addresses)
    monkeypatch.setattr(connections.socket.socket, "connect", connect)
    with pytest.raises(OSError, match="timed out"):
        Connection().post("https://unreachable.example/", b"{}", {})
    assert len(waited) == 20
    assert waited[0] == pytest.approx(connections.TIMEOUT / 20, abs=0.1)


def test_a_name_that_leads_elsewhere_at_a_second_look_up(settings, monkeypatch):
    settings.INTEGRATION_NETWORKS = []
    looked_up, connected = [], []

    def look_up(host, port, **options):
        looked_up.append(host)
        address = "203.0.114.7" if len(looked_up) == 1 else "127.0.0.1"
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))]

    def connect(self, address):
        connected.append(address)
        raise OSError("unreachable")

    monkeypatch.setattr(connections.socket, "getaddrinfo", look_up)
    monkeypatch.setattr(connections.socket.socket, "connect", connect)
    with pytest.raises(OSError, match="unreachable"):
        Connection().post("https://rebound.example/", b"{}", {})
    assert (looked_up, connected) == (["rebound.example"], [("203.0.114.7", 443)])


def test_one_private_address_among_public_ones(settings, monkeypatch):
    settings.INTEGRATION_NETWORKS = []
    addresses = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (ip, 443)) for ip in ("10.0.0.1", "203.0.114.7")]
    monkeypatch.setattr(connections.socket, "getaddrinfo", lambda *args, **options: addresses)
    with pytest.raises(Refused, match=r"10\.0\.0\.1"):
        Connection().post("https://mixed.example/", b"{}", {})


@pytest.mark.django_db(transaction=True)
def test_a_redirect_to_a_private_address_is_not_followed(receiver, shop, callers):
    integration = make_integration(f"{receiver.url}/hook")
    receiver.answer = lambda path, count: (307, {"Location": f"{receiver.url}/metadata"}, b"")
    create_flag("shop", NewFlag(name="cart"), caller=callers("admin"))
    deliver()
    assert [request.path for request in receiver.got] == ["/hook"]
    assert integration.deliveries.get().state == State.FAILED


@pytest.mark.django_db(transaction=True)
def test_an_event_that_cannot_be_written_is_tried_again_and_given_up(receiver, shop, callers, monkeypatch):
    integration = make_integration(f"{receiver.url}/hook")
    monkeypatch.setattr(Provider, "make_request", lambda *args: 1 / 0)
    create_flag("shop", NewFlag(name="cart"), caller=callers("admin"))
    deliver()
    waiting = integration.deliveries.get()
    assert (waiting.state, waiting.attempts) == (State.PENDING, 1)
    assert "could not be made" in waiting.state_details
    assert sender.claim() == []
