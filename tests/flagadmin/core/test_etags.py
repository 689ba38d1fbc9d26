"""``ETag`` and ``If-Match`` prevent API clients from overwriting each other's changes."""

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import pytest
from django.urls import get_resolver

from flagadmin.core.edit_conflicts.etags import ETagMixin, read_expected_versions
from flagadmin.core.errors import ValidationError
from groups.models import Group, Role, User
from playground.models import SavedContext
from projects.models import (
    ContextField,
    Environment,
    Flag,
    FlagEnvironment,
    Project,
    Segment,
    Strategy,
    StrategyType,
    TagType,
)
from releases.models import Milestone, ReleaseTemplate
from tests.support.cast import client, make_user
from tests.support.flags import add_strategy, make_flag
from tests.support.racing import BEFORE_COMMIT, BEFORE_LOCK, race

ADMIN = "/api/admin"
CART = f"{ADMIN}/projects/shop/features/cart"


@dataclass(frozen=True)
class Kind:
    """``make`` answers the URL of a row, whose ``field`` a PUT changes. ``put``: where the PUT has a URL of its own."""

    make: Callable[[], str]
    model: Any
    lookup: dict[str, str]
    field: str = "description"
    put: str = ""
    patch: bool = False
    done: int = 200
    deleted: int = 200

    @property
    def first(self) -> Any:
        return self.body("first")

    @property
    def second(self) -> Any:
        return self.body("second")

    def body(self, text: str) -> Any:
        if self.patch:
            return [{"op": "replace", "path": f"/{self.field}", "value": text}]
        return {self.field: text}

    def read(self) -> Any:
        return getattr(self.model.objects.get(**self.lookup), self.field)

    def changed(self, caller: Any, url: str, body: Any, **headers: str) -> Any:
        method = caller.patch if self.patch else caller.put
        return method(self.put or url, body, headers=headers)


class Variants(Kind):
    def body(self, text: str) -> Any:
        return [{"name": text, "weight": 1000, "weightType": "variable", "stickiness": "default"}]

    def read(self) -> Any:
        return super().read()[0]["name"]


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


def _flag() -> str:
    make_flag("cart")
    return CART


def _strategy() -> str:
    identifier = uuid4()
    add_strategy(make_flag("cart"), "production", "default", id=identifier)
    return f"{CART}/environments/production/strategies/{identifier}"


def _variants() -> str:
    make_flag("cart")
    return f"{CART}/environments/production/variants"


def _segment() -> str:
    return f"{ADMIN}/segments/{Segment.objects.create(name='vip', constraints=[]).pk}"


def _field() -> str:
    ContextField.objects.create(name="tier")
    return f"{ADMIN}/context/tier"


def _saved_context() -> str:
    return f"{ADMIN}/playground/contexts/{SavedContext.objects.create(name='Ada').pk}"


def _strategy_type() -> str:
    StrategyType.objects.create(name="hostGroup", built_in=False)
    return f"{ADMIN}/strategies/hostGroup"


def _release_template() -> str:
    template = ReleaseTemplate.objects.create(name="Careful")
    Milestone.objects.create(template=template, name="Everybody", place=0)
    return f"{ADMIN}/release-plan-templates/{template.pk}"


SHOP = f"{ADMIN}/projects/shop"
CART_IN_PRODUCTION = {"flag__name": "cart", "environment": "production"}
KINDS = {
    "tag type": Kind(_tag_type, TagType, {"name": "team"}),
    "environment": Kind(
        _environment, Environment, {"name": "staging"}, "type", put=f"{ADMIN}/environments/update/staging"
    ),
    "role": Kind(_role, Role, {"name": "Helper"}),
    "group": Kind(_group, Group, {"name": "Team"}),
    "user": Kind(_person, User, {"username": "ada"}, "name"),
    "flag": Kind(_flag, Flag, {"name": "cart"}, deleted=202),
    "flag, patched": Kind(_flag, Flag, {"name": "cart"}, patch=True, deleted=202),
    "strategy": Kind(_strategy, Strategy, CART_IN_PRODUCTION, "title"),
    "strategy, patched": Kind(_strategy, Strategy, CART_IN_PRODUCTION, "title", patch=True),
    "variants": Variants(_variants, FlagEnvironment, CART_IN_PRODUCTION, "variants"),
    "segment": Kind(_segment, Segment, {"name": "vip"}, done=204, deleted=204),
    "context field": Kind(_field, ContextField, {"name": "tier"}),
    "strategy type": Kind(_strategy_type, StrategyType, {"name": "hostGroup"}),
    "project": Kind(lambda: SHOP, Project, {"pk": "shop"}),
    "project overview": Kind(lambda: f"{SHOP}/overview", Project, {"pk": "shop"}, put=SHOP),
    "release template": Kind(_release_template, ReleaseTemplate, {"name": "Careful"}),
    "saved context": Kind(_saved_context, SavedContext, {"name": "Ada"}, "note", deleted=204),
    "service account": Kind(_account, User, {"username": "bot"}, "name"),
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

    assert kind.changed(admin, url, kind.first, **{"If-Match": tag}).status_code == kind.done
    assert kind.read() == "first"
    assert admin.get(url).headers["ETag"] != tag


def test_what_changed_since_is_not_overwritten(admin: Any, kind: Kind, url: str) -> None:
    tag = admin.get(url).headers["ETag"]
    kind.changed(admin, url, kind.first)

    refused = kind.changed(admin, url, kind.second, **{"If-Match": tag})

    assert (refused.status_code, refused.json()["name"]) == (412, "PreconditionFailedError")
    assert '"first"' in refused.text
    assert kind.read() == "first"
    assert (
        kind.changed(admin, url, kind.second, **{"If-Match": refused.headers["ETag"]}).status_code
        == kind.done
    )
    assert kind.read() == "second"


@pytest.mark.parametrize(
    "kind", [name for name in KINDS if name not in ("variants", "project overview")], indirect=True
)
def test_what_changed_since_is_not_deleted(admin: Any, kind: Kind, url: str) -> None:
    tag = admin.get(url).headers["ETag"]
    kind.changed(admin, url, kind.first)

    assert admin.delete(url, headers={"If-Match": tag}).status_code == 412
    assert kind.read() == "first"
    assert admin.delete(url, headers={"If-Match": admin.get(url).headers["ETag"]}).status_code == kind.deleted


def test_without_the_header_the_last_change_wins(admin: Any, kind: Kind, url: str) -> None:
    kind.changed(admin, url, kind.first)

    assert kind.changed(admin, url, kind.second).status_code == kind.done
    assert kind.changed(admin, url, kind.first, **{"If-Match": "*"}).status_code == kind.done
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


def test_legal_values_of_a_field_that_has_changed_stay(admin: Any) -> None:
    url = _field()
    tag = {"If-Match": admin.get(url).headers["ETag"]}
    values = f"{url}/legal-values"
    assert admin.post(values, {"value": "pro"}, headers=tag).status_code == 200

    assert admin.post(values, {"value": "free"}, headers=tag).status_code == 412
    assert admin.delete(f"{values}/pro", headers=tag).status_code == 412

    assert ContextField.objects.get(name="tier").legal_values == [{"value": "pro"}]
    assert admin.delete(f"{values}/pro").status_code == 200


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("kind", ["tag type", "strategy", "group", "user"], indirect=True)
@pytest.mark.parametrize("stop", [BEFORE_LOCK, BEFORE_COMMIT])
def test_of_two_at_once_one_is_done(transactional_db: Any, api: Any, kind: Kind, stop: str) -> None:
    url, other = kind.make(), api["admin_token"]
    tag = {"If-Match": api["admin"].get(url).headers["ETag"]}

    statuses = race(
        lambda: kind.changed(api["admin"], url, kind.first, **tag).status_code,
        lambda: kind.changed(other, url, kind.second, **tag).status_code,
        stop=stop,
    )

    assert statuses == ((412, 200) if stop == BEFORE_LOCK else (200, 412))
    assert kind.read() == ("second" if stop == BEFORE_LOCK else "first")


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
    assert read_expected_versions(header) == versions


@pytest.mark.parametrize("header", ["", "a", '"a', '"a" "b"', '"a",', '*, "a"', 'w/"a"'])
def test_malformed_if_match(header: str) -> None:
    with pytest.raises(ValidationError):
        read_expected_versions(header)


def test_whatever_is_read_and_changed_has_tags() -> None:
    views = defaultdict[type, set[str]](set)
    for pattern in flattened(get_resolver().url_patterns):
        if hasattr(pattern.callback, "actions"):
            views[pattern.callback.cls].update(pattern.callback.actions.values())
    assert views
    without = {
        view.__name__
        for view, actions in views.items()
        if "retrieve" in actions and {"update", "destroy"} & actions and not issubclass(view, ETagMixin)
    }
    assert without == {
        "AnalysisViewSet",  # it goes on by itself, and is only deleted
        "ApplicationViewSet",  # its document is what SDKs report
        "ReleasePlanViewSet",  # it takes its steps by itself
        "UserRunViewSet",  # it goes on by itself, and is only deleted
        "TokenViewSet",  # its one answer is a list: of the tokens of a name
        "InviteLinkViewSet",  # its document grows with those who sign up, and an update sets single values
    }


def flattened(patterns: Any) -> Iterator[Any]:
    for pattern in patterns:
        if hasattr(pattern, "url_patterns"):
            yield from flattened(pattern.url_patterns)
        else:
            yield pattern


def test_is_described() -> None:
    paths = client().get("/api/openapi.json").json()["paths"]
    one = paths["/api/admin/tag-types/{name}"]

    for method, header, answer in (("get", "If-None-Match", "304"), ("put", "If-Match", "412")):
        parameters = [each["name"] for each in one[method]["parameters"] if each["in"] == "header"]
        assert [name for name in parameters if name != "X-Comment"] == [header]
        assert answer in one[method]["responses"]
    assert "ETag" in one["get"]["responses"]["200"]["headers"]
