"""Events arrive: in order, at least once, signed, and only where they may."""

import base64
import hashlib
import hmac
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.db import connection, transaction
from django.utils import timezone

from flagadmin.core.audit.events import EventType
from flagadmin.core.audit.record import Event, record
from groups.access import Caller
from integrations.addons.actions import make_signing_key, send_again, send_test, update_integration
from integrations.addons.queries import make_integration_document
from integrations.deliveries import sender
from integrations.deliveries.connections import TIMEOUT, overdue
from integrations.deliveries.sender import relay, settle
from integrations.models import Delivery, Integration, Relay
from tests.support.live_server import PATIENCE
from tests.support.receiver import deliver, happen, later, make_integration, names_at, receiver, states

__all__ = ["receiver"]
pytestmark = pytest.mark.django_db(transaction=True)
State = Delivery.State


def test_events_arrive_once_and_in_order(receiver):
    integration = make_integration(f"{receiver.url}/hook")
    happen("a", "b", "c")
    deliver()
    deliver()
    happen("d")
    deliver()
    assert names_at(receiver) == ["a", "b", "c", "d"]
    assert states(integration) == [State.SUCCESS] * 4
    assert len({request.headers["webhook-id"] for request in receiver.got}) == 4


def test_a_commit_that_comes_later_than_its_id_is_not_missed(receiver):
    make_integration(f"{receiver.url}/hook")
    recorded, commit = threading.Event(), threading.Event()

    def slow() -> None:
        with transaction.atomic():
            with transaction.atomic():  # a savepoint has an id of its own
                record(
                    Event(type=EventType.FEATURE_CREATED, project="shop", feature="slow"),
                    actor=Caller.system(),
                )
            recorded.set()
            assert commit.wait(PATIENCE)
        connection.close()

    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(slow)
        assert recorded.wait(PATIENCE)
        happen("fast")
        for _ in range(4):
            deliver()
        happen("another")
        deliver()
        assert names_at(receiver) == ["fast", "another"]
        commit.set()
        running.result()
    deliver()
    assert names_at(receiver) == ["fast", "another", "slow"]
    deliver()
    deliver()
    assert len(receiver.got) == 3


def test_a_database_restored_elsewhere_loses_and_repeats_nothing(receiver):
    make_integration(f"{receiver.url}/hook")
    happen("a")
    deliver()
    Relay.objects.update(mark_xid=2**60, mark_id=2**40)
    happen("b")
    deliver()
    happen("c")
    deliver()
    assert names_at(receiver) == ["a", "b", "c"]


def test_what_all_could_see_is_not_read_again():
    position = Relay(pk=1, settled_id=3, mark_id=5, mark_xid=100)
    settle(position, last_id=9, oldest_running=99, next_xid=120)
    assert (position.settled_id, position.mark_id, position.mark_xid) == (3, 5, 100)
    settle(position, last_id=9, oldest_running=100, next_xid=120)
    assert (position.settled_id, position.mark_id, position.mark_xid) == (5, 9, 120)


@pytest.mark.parametrize(
    ("fields", "arrives"),
    [
        ({"projects": ["shop"]}, True),
        ({"projects": ["*"]}, True),
        ({"projects": ["other"]}, False),
        ({"environments": ["production"]}, True),
        ({"environments": ["development"]}, False),
        ({"events": ["feature-archived"]}, False),
        ({"enabled": False}, False),
    ],
)
def test_filters(receiver, fields, arrives):
    make_integration(f"{receiver.url}/hook", **fields)
    happen("a", kind=EventType.FEATURE_ENVIRONMENT_ENABLED, environment="production")
    deliver()
    assert bool(receiver.got) == arrives


def test_a_failing_receiver_is_tried_again_and_holds_its_order(receiver):
    integration = make_integration(f"{receiver.url}/hook")
    answers = [(503, {}, b""), (429, {"Retry-After": "1800"}, b""), (200, {}, b""), (200, {}, b"")]
    receiver.answer = lambda path, count: answers[count]
    happen("a", "b")
    deliver()
    assert states(integration) == [State.PENDING, State.PENDING]
    assert timezone.now() < Integration.objects.get().send_after < timezone.now() + timedelta(seconds=5)
    later(integration)
    deliver()
    assert Integration.objects.get().send_after > timezone.now() + timedelta(seconds=1700)
    deliver()
    assert len(receiver.got) == 2
    later(integration)
    deliver()
    assert names_at(receiver) == ["a", "a", "a", "b"]
    assert len({request.headers["webhook-id"] for request in receiver.got}) == 2
    assert states(integration) == [State.SUCCESS] * 2


def test_what_waits_is_tried_at_once_after_the_integration_was_changed(receiver, callers):
    integration = make_integration(f"{receiver.url}/wrong")
    receiver.answer = lambda path, count: (503 if path == "/wrong" else 200, {}, b"")
    happen("a")
    deliver()
    deliver()
    assert names_at(receiver, "/wrong") == ["a"]
    values = make_integration_document(integration) | {"parameters": {"url": f"{receiver.url}/right"}}
    update_integration(integration.pk, values, caller=callers("admin"))
    deliver()
    assert names_at(receiver, "/right") == ["a"]


def test_after_a_day_it_is_given_up_and_the_next_is_sent(receiver):
    integration = make_integration(f"{receiver.url}/hook")
    receiver.answer = lambda path, count: (500 if count < 2 else 200, {}, b"")
    happen("a", "b")
    deliver()
    Delivery.objects.filter(attempts=1).update(first_sent_at=timezone.now() - timedelta(days=2))
    later(integration)
    deliver()
    assert states(integration) == [State.FAILED, State.SUCCESS]
    assert "Given up after 2 attempts" in integration.deliveries.earliest("id").state_details


@pytest.mark.parametrize("status", [302, 400, 410])
def test_what_will_not_get_better_fails_at_once(receiver, status):
    integration = make_integration(f"{receiver.url}/hook")
    receiver.answer = lambda path, count: (status, {"Location": f"{receiver.url}/elsewhere"}, b"x" * 100_000)
    happen("a")
    deliver()
    failed = integration.deliveries.get()
    assert (failed.state, failed.attempts) == (State.FAILED, 1)
    assert failed.state_details == f"Webhook request failed with status code: {status}."
    assert len(failed.details["answer"]) == 2000
    assert not receiver.at("/elsewhere")


def test_a_receiver_that_hangs_is_cut_off_and_delays_nobody(receiver):
    slow, fast = make_integration(f"{receiver.url}/slow"), make_integration(f"{receiver.url}/fast")
    reached, end = threading.Event(), threading.Event()

    def answer(path, count):
        if path == "/slow":
            reached.set()
            end.wait(PATIENCE)
        return 200, {}, b""

    receiver.answer = answer
    happen("a")
    relay()
    relay()
    claims = sorted(sender.claim())
    assert [key for key, _until in claims] == [slow.pk, fast.pk]
    assert sender.claim() == []  # another server
    with ThreadPoolExecutor(1) as pool:
        hanging = pool.submit(sender.send_turn, *claims[0])
        assert reached.wait(PATIENCE)
        sender.send_turn(*claims[1])
        assert states(fast) == [State.SUCCESS]
        overdue.end(time.monotonic() + TIMEOUT)
        hanging.result()
    end.set()
    assert states(slow) == [State.PENDING]
    assert Integration.objects.get(pk=slow.pk).send_after > timezone.now()


def test_a_test_during_a_turn_sends_nothing_twice(receiver, people):
    integration = make_integration(f"{receiver.url}/hook")
    reached, end = threading.Event(), threading.Event()

    def answer(path, count):
        reached.set()
        end.wait(PATIENCE)
        return 200, {}, b""

    receiver.answer = answer
    happen("a", "b")
    relay()
    relay()
    [claimed] = sender.claim()
    with ThreadPoolExecutor(1) as pool:
        turn = pool.submit(sender.send_turn, *claimed)
        assert reached.wait(PATIENCE)
        send_test(integration.pk, caller=Caller(user=people["admin"]))
        assert sender.claim() == []  # another look, or another server
        end.set()
        turn.result()
    deliver()
    assert names_at(receiver) == ["a", "b", None]


def test_a_turn_that_outlives_its_claim_leaves_the_next_one_alone(receiver):
    integration = make_integration(f"{receiver.url}/hook")
    happen("a")
    relay()
    relay()
    [claimed] = sender.claim()
    Integration.objects.update(send_after=timezone.now(), claimed_until=timezone.now())  # its time has passed
    [another] = sender.claim()
    assert another != claimed
    sender.send_turn(*claimed)
    integration.refresh_from_db()
    assert (integration.pk, integration.claimed_until) == another
    assert integration.send_after == integration.claimed_until


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("https://127.0.0.1/", "private address"),
        ("https://[::1]/", "private address"),
        ("https://[::ffff:10.0.0.1]/", "private address"),
        ("https://[64:ff9b::a00:1]/", "private address"),
        ("https://169.254.169.254/latest", "private address"),
        ("https://localhost/", "private address"),
        ("http://1.1.1.1/", "needs https"),
    ],
)
def test_addresses_that_are_refused(settings, url, why):
    settings.INTEGRATION_NETWORKS = []
    integration = make_integration(url)
    happen("a")
    deliver()
    delivery = integration.deliveries.get()
    assert delivery.state == State.FAILED
    assert why in delivery.state_details


def test_signatures_with_the_present_and_the_replaced_key(receiver, callers):
    integration = make_integration(f"{receiver.url}/hook")
    caller = callers("admin")
    keys = [make_signing_key(integration.pk, caller=caller) for _ in range(3)]
    happen("a")
    deliver()
    request = receiver.got[0]
    content = (
        f"{request.headers['webhook-id']}.{request.headers['webhook-timestamp']}.".encode() + request.body
    )
    expected = [
        "v1," + base64.b64encode(hmac.digest(base64.b64decode(key[6:]), content, hashlib.sha256)).decode()
        for key in (keys[2], keys[1])
    ]
    assert request.headers["webhook-signature"].split(" ") == expected
    assert not any(key in Integration.objects.get().encrypted for key in keys)


def test_a_test_overtakes_and_send_again_keeps_the_id(receiver, callers):
    integration = make_integration(f"{receiver.url}/hook")
    caller = callers("admin")
    happen("a")
    relay()
    relay()
    send_test(integration.pk, caller=caller)
    deliver()
    assert [request.json()["type"] for request in receiver.got] == ["integration-test", "feature-created"]
    send_again(integration.pk, integration.deliveries.get(event_id__isnull=False).pk, caller=caller)
    deliver()
    assert receiver.got[1].headers["webhook-id"] == receiver.got[2].headers["webhook-id"]


def test_another_secret_key(receiver, settings):
    integration = make_integration(f"{receiver.url}/hook")
    happen("a")
    settings.SECRET_KEY = "another-key-that-is-long-enough-for-this-1234567890"
    settings.SECRET_KEY_FALLBACKS = []
    deliver()
    assert "SECRET_KEY has changed" in integration.deliveries.get().state_details
    assert not receiver.got
