"""Lists of segments that follow a URL: what is fetched and recorded, what is not applied, and whose rights count."""

import threading
from types import SimpleNamespace
from typing import Any

import pytest
from django.utils import timezone

from groups.models import User
from projects.models import ListSource, ProjectEnvironment, Segment
from projects.segments import source_task
from releases.models import ChangeRequest
from tests.support.flags import add_strategy, make_flag, switch_on
from tests.support.for_each import for_each
from tests.support.page_text import page_text
from tests.support.receiver import Receiver, receiver
from tests.support.records import events, refused

__all__ = ["receiver"]

URL = "/api/admin/segments"
STORED = ["1", "2", "3", "4"]


@pytest.fixture
def vip(api: Any) -> int:
    constraint = {"contextName": "userId", "operator": "IN", "values": STORED}
    return int(api["editor"].post(URL, {"name": "vip", "constraints": [constraint]}).json()["id"])


def fetch_due() -> None:
    source_task.fetch_due(threading.Event())


def answering(receiver: Receiver, body: str, status: int = 200, **headers: str) -> None:
    receiver.answer = lambda path, count: (status, headers, body.encode())


def follow(api: Any, vip: int, url: str, who: str = "editor", **body: Any) -> None:
    answer = api[who].put(f"{URL}/{vip}/list/source", {"url": url, **body})
    assert answer.status_code == 200, answer.content


def fetch() -> None:
    """The time of the next fetch has come."""
    ListSource.objects.update(due_at=timezone.now())
    fetch_due()


def values(vip: int) -> list[str]:
    return list(Segment.objects.get(pk=vip).constraints[0]["values"])


def source(api: Any, vip: int, who: str = "viewer") -> Any:
    return api[who].get(f"{URL}/{vip}/list/source").json()


def test_a_list_follows_its_url(api: Any, vip: int, receiver: Receiver) -> None:
    answering(receiver, "2\n3\n4\n5\n", ETag='"one"')
    follow(api, vip, f"{receiver.url}/ids")

    fetch_due()
    fetch_due()  # not due for an hour

    assert values(vip) == ["2", "3", "4", "5"]
    (event,) = events("segment-updated")
    assert event.actor_name == "flagadmin"
    assert event.comment == f"Fetched from {receiver.url[7:]}, as editor set it up"
    record = source(api, vip)
    assert (record["result"], record["problem"], record["setBy"]) == ("+ 1, − 1", "", "editor")
    assert len(receiver.got) == 1

    answering(receiver, "", 304)
    fetch()
    assert receiver.got[-1].headers["if-none-match"] == '"one"'
    assert source(api, vip)["result"] == "Nothing to change."

    api["editor"].put(f"{URL}/{vip}/list", {"values": ["9", "2"]})
    answering(receiver, "2\n3\n4\n5\n", ETag='"one"')
    fetch()
    assert "if-none-match" not in receiver.got[-1].headers  # the list is no longer the one that was fetched
    assert values(vip) == ["2", "3", "4", "5"]


@for_each(
    ("body", "settings_of_source"),
    [
        ("mail,id\na@x,7\nb@x,8\n", {"format": "csv", "column": "id"}),
        ("userId,id\n7,1\n8,2\n", {"format": "csv"}),
        ('["7", 8]', {"format": "json"}),
        ('{"values": [7, "8"]}', {"format": "json"}),
        ('[{"id": 7}, {"id": "8"}]', {"format": "json", "column": "id"}),
    ],
)
def test_forms_of_a_list(
    api: Any, vip: int, receiver: Receiver, body: str, settings_of_source: dict[str, str]
) -> None:
    answering(receiver, body)
    follow(api, vip, receiver.url, **settings_of_source)

    fetch_due()

    assert values(vip) == ["7", "8"], source(api, vip)


@pytest.mark.parametrize(
    ("body", "status", "headers", "form", "problem"),
    [
        ("1\n", 200, {}, "lines", "The list has 1 value in place of 4, less than half."),
        (" \n", 200, {}, "lines", "a list needs at least one value"),
        ("[]", 200, {}, "json", "a list needs at least one value"),
        ("[null, 1]", 200, {}, "json", "values[0]: must be a text or a whole number"),
        ("<html>", 200, {}, "json", "The body is not"),
        ("7\n" * 600, 200, {}, "lines", "its answer has more than 1,000 bytes"),
        ("1\n2\n3\n", 404, {}, "lines", "The server answered with status 404."),
        ("1\n2\n3\n", 302, {"Location": "/other"}, "lines", "The server redirects to another address"),
    ],
)
def test_what_is_not_applied(
    api: Any, vip: int, receiver: Receiver, monkeypatch: Any,
    body: str, status: int, headers: dict[str, str], form: str, problem: str,
) -> None:  # fmt: skip
    monkeypatch.setattr(source_task, "BODY_LIMIT", 1_000)
    answering(receiver, body, status, **headers)
    follow(api, vip, f"{receiver.url}/ids", format=form)

    fetch_due()

    record = source(api, vip)
    assert problem in record["problem"]
    assert (record["result"], values(vip), len(receiver.got)) == ("", STORED, 1)
    assert record["checkedAt"]


def test_addresses_of_private_networks(api: Any, vip: int, receiver: Receiver, settings: Any) -> None:
    settings.INTEGRATION_NETWORKS = []
    follow(api, vip, f"{receiver.url}/ids")

    fetch_due()

    assert source(api, vip)["problem"].startswith("127.0.0.1 is a private address.")
    assert receiver.got == []


@pytest.mark.django_db(transaction=True)
def test_no_way_round_change_requests(api: Any, browse: Any, vip: int, receiver: Receiver) -> None:
    lounge = make_flag("lounge")
    add_strategy(lounge, "production", segments=[Segment.objects.get(pk=vip)])
    switch_on(lounge, "production")
    ProjectEnvironment.objects.filter(project="shop", environment="production").update(required_approvals=1)
    answering(receiver, "1\n2\n3\n")
    follow(api, vip, f"{receiver.url}/ids", who="admin")

    fetch_due()

    assert (values(vip), ChangeRequest.objects.count(), events("segment-updated")) == (STORED, 0, [])
    assert source(api, vip)["problem"].startswith("This needs a change request")
    page = page_text(browse("viewer").get(f"/segments/{vip}/list"))
    assert "Kept in step from a URL" in page
    assert "This needs a change request" in page


@for_each(
    ("lose", "problem"),
    [
        (lambda users: users.update(root_role=None), "editor, who set the URL, may no longer change this"),
        (lambda users: users.update(is_active=False), "editor, who set the URL, may no longer change this"),
        (lambda users: users.delete(), "editor, who set the URL, has been deleted."),
    ],
)
def test_the_rights_that_count_are_those_of_now(
    api: Any, vip: int, receiver: Receiver, lose: Any, problem: str
) -> None:
    answering(receiver, "1\n2\n3\n")
    follow(api, vip, f"{receiver.url}/ids")
    lose(User.objects.filter(username="editor"))

    fetch_due()

    assert source(api, vip)["problem"].startswith(problem)
    assert values(vip) == STORED


def test_a_key_in_the_query_stays_secret_and_is_kept(api: Any, browse: Any, vip: int) -> None:
    follow(api, vip, "https://crm.example.com/ids?key=SECRET")
    assert source(api, vip)["url"] == "https://crm.example.com/ids?…"
    assert "SECRET" not in browse("editor").get(f"/segments/{vip}/list").text
    page = browse("editor").get(f"/segments/{vip}/list/source")
    assert "SECRET" not in page.text

    form = {"url": "https://crm.example.com/ids?…", "format": "lines", "minutes": "15"}
    assert browse("editor").post(f"/segments/{vip}/list/source", form).status_code == 302

    stored = ListSource.objects.get()
    assert (stored.url, stored.minutes) == ("https://crm.example.com/ids?key=SECRET", 15)
    assert "SECRET" not in stored.encrypted_url
    assert "SECRET" not in str(
        [(event.before, event.after) for event in events("segment-list-source-updated")]
    )
    assert len(events("segment-list-source-updated")) == 2


def test_who_may_set_and_remove_it(api: Any, browse: Any, vip: int) -> None:
    body = {"url": "https://crm.example.com/ids"}
    refused(api["viewer"].put(f"{URL}/{vip}/list/source", body), 403, "NoAccessError")
    assert browse("viewer").get(f"/segments/{vip}/list/source").status_code == 403
    refused(api["admin_token"].put(f"{URL}/{vip}/list/source", body), 403, "InvalidOperationError")
    record = refused(
        api["editor"].put(
            f"{URL}/{vip}/list/source", {"url": "ftp://a@b", "column": "id", "intervalMinutes": 60}
        ),
        400,
        "ValidationError",
    )
    assert [each["path"] for each in record["details"]] == ["url", "column"]

    tag = api["editor"].get(f"{URL}/{vip}/list/source")["ETag"]
    follow(api, vip, body["url"])
    late = api["editor"].delete(f"{URL}/{vip}/list/source", headers={"If-Match": tag})
    refused(late, 412, "PreconditionFailedError")
    assert (
        browse("editor")
        .post(f"/segments/{vip}/list/source", {"format": "lines", "minutes": "60"})
        .status_code
        == 302
    )

    assert source(api, vip)["url"] is None
    assert (ListSource.objects.count(), values(vip)) == (0, STORED)


def test_fetch_now_and_the_first_failure_is_an_event(
    api: Any, browse: Any, vip: int, receiver: Receiver
) -> None:
    now = f"{URL}/{vip}/list/source/fetch"
    refused(api["editor"].post(now), 404, "NotFoundError")
    answering(receiver, "1\n2\n3\n")
    follow(api, vip, f"{receiver.url}/ids?key=SECRET")
    fetch_due()
    refused(api["viewer"].post(now), 403, "NoAccessError")
    for status in (404, 500):
        answering(receiver, "", status)
        assert api["editor"].post(now).status_code == 202
        fetch_due()
    (event,) = events("segment-list-not-fetched")
    assert (event.after["id"], event.subject) == (vip, "vip")
    assert event.after["problem"] == "The server answered with status 404."
    assert "SECRET" not in str(event.after)

    answering(receiver, "1\n2\n")
    assert "Fetch now" in browse("editor").get(f"/segments/{vip}/list").text
    assert browse("editor").post(f"/segments/{vip}/list/source/fetch").status_code == 302
    fetch_due()
    assert values(vip) == ["1", "2"]


def test_a_turn_ends_with_the_server_and_outlives_errors(monkeypatch: Any, vip: int, api: Any) -> None:
    follow(api, vip, "https://crm.example.com/ids")
    stop, turns = threading.Event(), []

    def fail(event: threading.Event) -> None:
        turns.append(event)
        if len(turns) == 2:
            stop.set()
        raise RuntimeError

    monkeypatch.setattr(source_task, "fetch_due", fail)
    monkeypatch.setattr(source_task, "PAUSE", 0)
    monkeypatch.setattr(source_task, "connection", SimpleNamespace(close=lambda: None))  # the test's
    source_task.run(stop)
    assert turns == [stop, stop]
