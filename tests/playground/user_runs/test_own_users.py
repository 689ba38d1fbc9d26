"""Users of a person's own file: kept if they allow it, preferred by whatever says who changes, and named."""

from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from playground.models import OwnUsers
from projects.models import ContextField, Strategy
from tests.support.page_text import page_text
from tests.support.playground import live_flag

PAGE = "/playground/users/"
WHO = "/playground/who-changes/"
ONLY_42 = {"contextName": "userId", "operator": "IN", "values": ["42"]}
USERS = "userId,country\n42,NO\n7,DE\n8,\n"


@pytest.fixture
def lounge(shop: Any) -> Any:
    ContextField.objects.create(name="country")
    return live_flag("lounge", strategies=[{"name": "default", "constraints": [ONLY_42]}])


def upload(browse: Any, body: str = USERS, who: str = "admin", **more: str) -> Any:
    file = SimpleUploadedFile("customers.csv", body.encode(), content_type="text/csv")
    return browse(who).post(PAGE, {"file": file, "environment": "production"} | more)


def panel(browse: Any, who: str = "admin") -> str:
    strategy = Strategy.objects.get(flag__name="lounge")
    url = f"/projects/shop/features/lounge/strategies/edit?environmentId=production&strategyId={strategy.pk}"
    sent = {"name": "default", "switch": "enabled", "enabled": "on"}
    sent |= {"c": "0", "c-0-field": "userId", "c-0-operator": "IN", "c-0-values": "42\n7"}
    return page_text(browse(who).post(f"/if-saved{url}", sent, headers={"HX-Request": "true"}))


def test_forms_say_what_changes_for_the_users_of_the_last_file(browse: Any, lounge: Any) -> None:
    assert upload(browse, keep="on").status_code == 302

    assert "1 of 3 users of customers.csv change" in panel(browse)
    assert "of 10,000 generated users change" in panel(browse, "member")
    assert "3 users of customers.csv" in page_text(browse("admin").get(PAGE))


def test_without_leave_none_is_kept(browse: Any, lounge: Any) -> None:
    upload(browse)
    assert not OwnUsers.objects.exists()
    assert "generated users change" in panel(browse)


def test_who_changes_compares_them_first(browse: Any, lounge: Any) -> None:
    upload(browse, keep="on")
    query = {"from": "development", "to": "production"}

    page = page_text(browse("admin").get(WHO, query))
    assert "1 of 3 users of customers.csv see a change" in page
    assert "Users of customers.csv" in page
    generated = page_text(browse("admin").get(WHO, query | {"for": "users"}))
    assert "generated users see a change" in generated
    assert "customers.csv" not in page_text(browse("member").get(WHO, query | {"for": "own"}))


def test_another_file_replaces_them_and_a_button_removes_them(browse: Any, lounge: Any) -> None:
    upload(browse, keep="on")
    upload(browse, "userId\n" + "\n".join(map(str, range(15_000))), keep="on")
    [own] = OwnUsers.objects.all()
    assert own.number == 10_000

    answer = browse("admin").post(f"{PAGE}own/delete", follow=True)

    assert "Who changes compares generated users again." in page_text(answer)
    assert not OwnUsers.objects.exists()


def test_removing_touches_nobody_elses(browse: Any, lounge: Any) -> None:
    upload(browse, keep="on")
    browse("member").post(f"{PAGE}own/delete")
    assert OwnUsers.objects.count() == 1
