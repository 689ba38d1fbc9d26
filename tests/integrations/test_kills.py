"""Writers and senders that are killed, and connections that the database ends: nothing is lost, the order stays."""

import os
import signal
import threading
from multiprocessing import get_context
from typing import Any

import pytest
from django.db import connection

from flagadmin.core.audit.models import AuditEvent
from integrations.models import Delivery, Integration
from tests.support.delivering import send, write
from tests.support.live_server import PATIENCE
from tests.support.receiver import Receiver, deliver, later, make_integration, receiver

__all__ = ["receiver"]
pytestmark = [pytest.mark.processes, pytest.mark.django_db(transaction=True), pytest.mark.exhaustive]
ROUNDS, REQUESTS_IN_A_ROUND = 3, 30


def start(task: Any) -> Any:
    process = get_context("spawn").Process(target=task, args=(connection.settings_dict["NAME"],), daemon=True)
    process.start()
    return process


def kill(process: Any) -> None:
    os.kill(process.pid, signal.SIGKILL)
    process.join(PATIENCE)
    assert process.exitcode == -signal.SIGKILL


def end_connections() -> None:
    """As a database that is restarted does."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND usename = current_user AND pid <> pg_backend_pid()"
        )


def test_events_survive_kills(receiver: Receiver) -> None:
    integration = make_integration(f"{receiver.url}/hook")
    arrived = threading.Semaphore(0)

    def answer(path: str, count: int) -> Any:
        arrived.release()
        return 200, {}, b""

    receiver.answer = answer
    writer, sender = start(write), start(send)
    for number in range(ROUNDS):
        for _ in range(REQUESTS_IN_A_ROUND):
            assert arrived.acquire(timeout=PATIENCE)
        if number % 2:
            kill(writer)
            end_connections()
            writer = start(write)
        else:
            kill(sender)
            sender = start(send)
    kill(writer)
    kill(sender)
    finish(integration)
    check(receiver, integration)


def finish(integration: Integration) -> None:
    later(integration)
    deliver()
    while integration.deliveries.filter(state=Delivery.State.PENDING).exists():
        later(integration)
        deliver()


def check(receiver: Receiver, integration: Integration) -> None:
    """Each event arrived, for the first time in the order of the log; what arrived again has the same id."""
    ids: dict[int, str] = {}
    for request in receiver.at("/hook"):
        message = request.headers["webhook-id"]
        assert ids.setdefault(request.json()["id"], message) == message
    happened = AuditEvent.objects.filter(created_at__gte=integration.created_at).order_by("created_at", "id")
    assert list(ids) == list(happened.values_list("id", flat=True))
