"""Reads of SDKs go to the replica, and to the primary if the replica fails."""

from collections.abc import Iterator

import pytest
from django.db import OperationalError

from flagadmin.core.db import outages
from flagadmin.core.db import outages as module
from flagadmin.core.db.outages import choose_sdk_database, has_other_database, read_for_sdks, replica


@pytest.fixture(autouse=True)
def _with_replica(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(module, "has_replica", lambda: True)
    yield
    replica.note_reached()
    outages.reach.forget()


def fails_on_the_replica(using: str) -> str:
    if using == "replica":
        raise OperationalError("no connection")
    return using


def test_the_replica_is_asked() -> None:
    assert read_for_sdks(lambda using: using) == "replica"


def test_without_a_replica_the_primary_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "has_replica", lambda: False)
    assert read_for_sdks(lambda using: using) == "default"


def test_the_primary_is_asked_if_the_replica_fails() -> None:
    assert read_for_sdks(fails_on_the_replica) == "default"


def test_a_lost_replica_is_not_asked() -> None:
    replica.note_lost()
    assert choose_sdk_database() == "default"
    assert replica.count_seconds_lost() > 0
    replica.note_reached()
    assert choose_sdk_database() == "replica"


def test_the_replica_alone_is_asked_while_the_primary_is_lost() -> None:
    outages.reach.note_lost()
    assert not has_other_database("replica")
    with pytest.raises(OperationalError):
        read_for_sdks(fails_on_the_replica)


def test_errors_of_the_request_are_not_tried_twice() -> None:
    asked = []

    def refuse(using: str) -> None:
        asked.append(using)
        raise ValueError

    with pytest.raises(ValueError):
        read_for_sdks(refuse)
    assert asked == ["replica"]
