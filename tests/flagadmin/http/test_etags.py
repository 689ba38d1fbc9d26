"""``ETag`` and ``If-Match``: whoever sends what they have read overwrites nobody else's change."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from flagadmin.errors import ValidationError
from flagadmin.http.etags import expected_versions
from groups.models import Group, Role, User
from projects.models import Environment, TagType
from tests.support.cast import make_user

ADMIN = "/api/admin"


@dataclass(frozen=True)
class Kind:
    """``make`` answers the URL; ``read`` what the PUT has changed. ``put``: where the PUT has a URL of its own."""

    make: Callable[[], str]
    first: dict[str, Any]
    second: dict[str, Any]
    read: Callable[[], Any]
    put: str = ""
    patch: bool = False

    def changed(self, caller: Any, url: str, body: Any, **headers: str) -> Any:
        method = caller.patch if self.patch else caller.put
        return method(self.put or url, body, format="json", headers=headers)


def _tag_type() -> str:
    TagType.objects.create(name="team")
    return f"{ADMIN}/tag-types/team"


def _environment() -> str:
    Environment.objects.create(name="staging", type="test")
    return f"{ADMIN}/environments/staging"


def _role() -> str:
    return f"{ADMIN}/roles/{Role.objects.create(name='Helper', type=Role.Type.CUSTOM).pk}"


def _group() -> str:
    return f"{ADMIN}/groups/{Group.objects.create(name='Team').pk}"


def _person() -> str:
    return f"{ADMIN}/user-admin/{make_user('ada').pk}"


def _account() -> str:
    return f"{ADMIN}/service-account/{make_user('bot', is_service=True).pk}"


def _text(name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    return {name: "first"}, {name: "second"}


KINDS = {
    "tag type": Kind(_tag_type, *_text("description"), lambda: TagType.objects.get(name="team").description),
    "environment": Kind(
        _environment,
        *_text("type"),
        lambda: Environment.objects.get(name="staging").type,
        put=f"{ADMIN}/environments/update/staging",
    ),
    "role": Kind(_role, *_text("description"), lambda: Role.objects.get(name="Helper").description),
    "group": Kind(_group, *_text("description"), lambda: Group.objects.get(name="Team").description),
    "user": Kind(_person, *_text("name"), lambda: User.objects.get(username="ada").name),
    "service account": Kind(_account, *_text("name"), lambda: User.objects.get(username="bot").name),
}


@pytest.fixture(params=KINDS)
def kind(request: Any) -> Kind:
    return KINDS[request.param]


@pytest.fixture
def url(kind: Kind, people: Any) -> str:
    return kind.make()


@pytest.fixture
def admin(api: Any) -> Any:
    return api["admin"]


def test_the_tag_read_is_the_one_to_change_with(admin: Any, kind: Kind, url: str) -> None:
    tag = admin.get(url).headers["ETag"]

    assert kind.changed(admin, url, kind.first, **{"If-Match": tag}).status_code == 200
    assert kind.read() == "first"
    assert admin.get(url).headers["ETag"] != tag


def test_what_changed_since_is_not_overwritten(admin: Any, kind: Kind, url: str) -> None:
    tag = admin.get(url).headers["ETag"]
    kind.changed(admin, url, kind.first)

    refused = kind.changed(admin, url, kind.second, **{"If-Match": tag})

    assert (refused.status_code, refused.json()["name"]) == (412, "PreconditionFailedError")
    assert "first" in refused.json()["current"].values()
    assert kind.read() == "first"
    assert kind.changed(admin, url, kind.second, **{"If-Match": refused.headers["ETag"]}).status_code == 200
    assert kind.read() == "second"


def test_what_changed_since_is_not_deleted(admin: Any, kind: Kind, url: str) -> None:
    tag = admin.get(url).headers["ETag"]
    kind.changed(admin, url, kind.first)

    assert admin.delete(url, headers={"If-Match": tag}).status_code == 412
    assert kind.read() == "first"
    assert admin.delete(url, headers={"If-Match": admin.get(url).headers["ETag"]}).status_code == 200


def test_without_the_header_the_last_change_wins(admin: Any, kind: Kind, url: str) -> None:
    kind.changed(admin, url, kind.first)

    assert kind.changed(admin, url, kind.second).status_code == 200
    assert kind.changed(admin, url, kind.first, **{"If-Match": "*"}).status_code == 200
    assert kind.read() == "first"


def test_the_same_answer_is_not_sent_again(admin: Any, kind: Kind, url: str) -> None:
    tag = admin.get(url).headers["ETag"]

    again = admin.get(url, headers={"If-None-Match": tag})

    assert (again.status_code, again.content, again.headers["ETag"]) == (304, b"", tag)
    kind.changed(admin, url, kind.first)
    assert admin.get(url, headers={"If-None-Match": tag}).status_code == 200


def test_if_match_that_cannot_be_read_is_refused(admin: Any, kind: Kind, url: str) -> None:
    refused = kind.changed(admin, url, kind.first, **{"If-Match": "abc"})

    assert (refused.status_code, refused.json()["details"][0]["path"]) == (400, "If-Match")


@pytest.mark.parametrize(
    ("header", "versions"),
    [
        (None, None),
        (" * ", None),
        ('"a-b"', {"a"}),
        ('"a", "b-c" ,"d"', {"a", "b", "d"}),
        ('W/"a", "b"', {"b"}),
        ('W/"a"', set()),
        ('""', {""}),
    ],
)
def test_versions_of_if_match(header: str | None, versions: set[str] | None) -> None:
    assert expected_versions(header) == versions


@pytest.mark.parametrize("header", ["", "a", '"a', '"a" "b"', '"a",', '*, "a"', 'w/"a"'])
def test_malformed_if_match(header: str) -> None:
    with pytest.raises(ValidationError):
        expected_versions(header)
