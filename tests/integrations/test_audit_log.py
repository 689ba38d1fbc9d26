"""The audit log elsewhere: as lines of a file or of syslog, by cursor, and what is removed after a while."""

import io
import json
import socket
import sys
from datetime import timedelta

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.db import connection, transaction
from django.db.utils import ProgrammingError
from django.utils import timezone

from flagadmin.core import env
from flagadmin.core.audit.events import EventType as E
from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.audit.record import Event, record
from groups.access import Caller
from integrations import audit_log
from integrations.audit_log import REMOVABLE, prune, write_batch
from integrations.deliveries.sender import read_settled_id, relay
from integrations.models import Delivery, WrittenLog
from projects.history.queries import TYPES
from tests.support.live_server import wait_until
from tests.support.receiver import make_integration

pytestmark = pytest.mark.django_db(transaction=True)


def happen(*names, kind=E.SEGMENT_CREATED, **fields):
    for name in names:
        with transaction.atomic():
            record(Event(type=kind, subject=name, **fields), actor=Caller.system())


@pytest.fixture
def make_handler():
    made = []

    def make(target):
        made.append(audit_log.make_handler(str(target)))
        return made[-1]

    yield make
    for handler in made:
        handler.close()


def settle():
    """What has happened can be read. Transactions of other tests, in databases of the same server, hold that back."""

    def is_settled():
        relay()
        last = AuditEvent.objects.order_by("pk").last()
        return last is None or read_settled_id() >= last.pk

    wait_until(is_settled)


def subjects(text):
    return [json.loads(line)["summary"].rpartition(" ")[2] for line in text.splitlines()]


# Lines --------------------------------------------------------------------------------------------------------


def test_each_event_is_a_line_of_the_file_also_after_it_was_rotated(make_handler, tmp_path):
    path = tmp_path / "audit.jsonl"
    handler = make_handler(path)
    happen("a", "b", after={"text": "two\nlines"})
    settle()
    assert not write_batch(handler)
    assert subjects(path.read_text()) == ["a", "b"]
    path.rename(tmp_path / "audit.jsonl.1")
    happen("c")
    settle()
    write_batch(handler)
    write_batch(handler)
    assert subjects(path.read_text()) == ["c"]


def test_many_events_are_written_in_batches(make_handler, tmp_path, monkeypatch):
    monkeypatch.setattr(audit_log, "BATCH", 2)
    handler = make_handler(tmp_path / "log")
    happen("a", "b", "c")
    settle()
    assert write_batch(handler)
    assert not write_batch(handler)
    assert subjects((tmp_path / "log").read_text()) == ["a", "b", "c"]


def test_standard_output(make_handler, monkeypatch):
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    happen("a")
    settle()
    write_batch(make_handler("stdout"))
    assert subjects(sys.stdout.getvalue()) == ["a"]


def test_what_cannot_be_written_is_written_later(make_handler, tmp_path):
    happen("a")
    settle()
    with pytest.raises(OSError):
        write_batch(make_handler(tmp_path / "missing" / "log"))
    write_batch(make_handler(tmp_path / "log"))
    assert subjects((tmp_path / "log").read_text()) == ["a"]


def test_a_line_that_was_cut_swallows_no_other(make_handler, tmp_path):
    """As when the disk was full."""
    path = tmp_path / "log"
    path.write_text('{"id": 1}\n{"id": 2, "ty')
    happen("a")
    settle()
    write_batch(make_handler(path))
    first, cut, line = path.read_text().splitlines()
    assert (first, cut) == ('{"id": 1}', '{"id": 2, "ty')
    assert subjects(line) == ["a"]
    happen("b")
    settle()
    write_batch(make_handler(path))
    assert len(path.read_text().splitlines()) == 4


def test_only_one_server_writes_until_its_claim_ends(make_handler, tmp_path):
    happen("a")
    settle()
    WrittenLog.objects.create(pk=1, claimed_until=timezone.now() + timedelta(seconds=60))
    handler = make_handler(tmp_path / "log")
    write_batch(handler)
    assert not (tmp_path / "log").exists()
    WrittenLog.objects.update(claimed_until=timezone.now() - timedelta(seconds=1))
    write_batch(handler)
    assert subjects((tmp_path / "log").read_text()) == ["a"]


def test_syslog_by_udp_cuts_what_no_datagram_holds(make_handler):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.settimeout(60)
        server.bind(("127.0.0.1", 0))
        server.settimeout(10)
        happen("a", "b", after={"text": "x" * 100_000})
        settle()
        write_batch(make_handler(f"syslog://127.0.0.1:{server.getsockname()[1]}"))
        first = server.recv(70_000).decode()
    head, _, line = first.partition("flagadmin: ")
    assert head == "<14>"
    assert (json.loads(line)["isCut"], json.loads(line)["data"]) == (True, None)


def test_syslog_by_tcp_ends_each_line(make_handler):
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(60)
        happen("a", "b")
        settle()
        write_batch(make_handler(f"syslog+tcp://127.0.0.1:{server.getsockname()[1]}"))
        accepted, _ = server.accept()
        with accepted:
            accepted.settimeout(60)
            lines = accepted.recv(70_000).decode().splitlines()
    assert [json.loads(line.partition("flagadmin: ")[2])["type"] for line in lines] == ["segment-created"] * 2


@pytest.mark.parametrize("value", ["stderr", "log.txt", "syslog://", "syslog://host:x", "http://host/"])
def test_targets_that_are_refused(monkeypatch, value):
    monkeypatch.setenv("FLAGADMIN_AUDIT_LOG", value)
    with pytest.raises(ImproperlyConfigured, match="FLAGADMIN_AUDIT_LOG must be stdout"):
        env.log_target("FLAGADMIN_AUDIT_LOG")


# By cursor ----------------------------------------------------------------------------------------------------


def read(client, query, status=200):
    answer = client.get(f"/api/admin/events?{query}")
    assert answer.status_code == status, answer.content
    return answer


def test_a_cursor_goes_through_everything_once(api):
    happen("a", "b", "c")
    settle()
    client, lines, cursor = api["admin"], [], "0"
    while (answer := read(client, f"cursor={cursor}&limit=2&type=segment-created")).content:
        assert answer["Content-Type"] == "application/x-ndjson"
        lines += subjects(answer.content.decode())
        cursor = answer["X-Next-Cursor"]
    assert lines == ["a", "b", "c"]
    assert answer["X-Next-Cursor"] == cursor


def test_an_event_waits_for_earlier_ones_that_may_still_appear(api):
    happen("a")
    settle()
    happen("b")
    assert subjects(read(api["admin"], "cursor=0&type=segment-created").content.decode()) == ["a"]


def test_a_cursor_shows_only_what_the_caller_may_read(api, shop):
    with transaction.atomic():
        record(Event(type=E.PROJECT_UPDATED, project="secret"), actor=Caller.system())
    happen("nobody", kind=E.USER_CREATED)
    settle()
    assert read(api["outsider"], "cursor=0").content == b""


@pytest.mark.parametrize("query", ["cursor=x", "cursor=-1", "cursor=0&offset=5", "cursor=0&nothing=1"])
def test_cursors_that_are_refused(api, query):
    assert read(api["admin"], query, 400).json()["details"]


# What is removed ----------------------------------------------------------------------------------------------


def age(days):
    """Makes all events older, which only a test may."""
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE audit_auditevent DISABLE TRIGGER USER")
        cursor.execute(
            "UPDATE audit_auditevent SET created_at = created_at - make_interval(days => %s)", [days]
        )
        cursor.execute("ALTER TABLE audit_auditevent ENABLE TRIGGER USER")


def test_old_events_about_accounts_are_removed_which_an_event_says(settings):
    settings.AUDIT_DAYS = 90
    happen("ann", "ben", kind=E.USER_CREATED)
    happen("s")
    age(91)
    happen("new", kind=E.USER_CREATED)
    settle()
    assert prune() == 2
    event = AuditEvent.objects.get(type=E.EVENTS_PRUNED)
    assert (event.actor_name, event.after["removed"]) == ("flagadmin", {"user-created": 2})
    assert set(AuditEvent.objects.values_list("subject", flat=True)) == {"s", "new", "2"}
    assert prune() == 0


def test_by_default_nothing_is_removed():
    happen("ann", kind=E.USER_CREATED)
    age(5000)
    settle()
    assert prune() == 0


def test_what_is_still_to_be_sent_or_written_stays(settings):
    settings.AUDIT_DAYS = 1
    happen("ann", kind=E.USER_CREATED)
    age(2)
    assert prune() == 0  # not settled
    settle()
    settings.AUDIT_LOG = "/somewhere"
    assert prune() == 0
    settings.AUDIT_LOG = ""
    delivery = Delivery.objects.create(
        integration=make_integration("https://a.example/"), event_id=AuditEvent.objects.get().pk
    )
    assert prune() == 0
    delivery.delete()
    assert prune() == 1


def test_the_past_needs_nothing_of_what_is_removed():
    assert not set(TYPES) & set(REMOVABLE)
    assert not [
        kind for kind in REMOVABLE if kind.startswith(("segment-", "environment-", "change-", "strategy-"))
    ]


def test_events_are_still_append_only():
    happen("ann", kind=E.USER_CREATED)
    with pytest.raises(ProgrammingError, match="Cannot update or delete"), transaction.atomic():
        AuditEvent.objects.all().delete()
