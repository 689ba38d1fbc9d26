"""Who may read one project sees nothing of others: in comparisons, in the past, in expectations, exports and events."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest
from django.utils import timezone
from rest_framework.test import APIClient

from groups.access import Caller
from integrations.models import Integration
from playground.models import SavedContext
from projects.flags.actions import NewFlag, create_flag
from projects.flags.archive import actions as archive
from projects.flags.dependencies import actions as dependencies
from projects.flags.environments import actions as environments
from projects.models import Segment
from projects.segments.actions import create_segment, update_segment
from projects.strategies import actions as strategies
from tests.support.cast import make_project
from tests.support.receiver import make_integration
from tests.support.records import refused

SYSTEM = Caller.system()
COMPARE, PLAYGROUND = "/api/admin/playground/compare", "/api/admin/playground"
CHECK, EXPORT = (
    "/api/admin/playground/check-expectations",
    "/api/admin/features-batch/export?savedContexts=true",
)
NOW, SOMEBODY = {"environment": "production"}, {"explicit": [{"userId": "42"}]}
SECRET = b"occult"
"""The beginning of every name of the project that the reader may not read."""


@pytest.fixture
def then(shop: Any) -> datetime:
    """A moment since which everything has changed, in `shop` and in `occult`."""
    occult = make_project("occult", name="occult project")
    only_one = {"contextName": "userId", "operator": "IN", "values": ["occult-user"]}
    fields = {"name": "occult-segment", "constraints": [only_one], "project_id": occult.pk}
    segment = create_segment(fields, caller=SYSTEM)
    places = (
        ("shop", "cart"),
        ("occult", "occult-flag"),
        ("occult", "occult-gone"),
        ("occult", "occult-child"),
    )
    for project, name in places:
        create_flag(project, NewFlag(name=name), caller=SYSTEM)
        environments.enable_flag(project, name, "production", caller=SYSTEM)
    given = {"name": "default", "segments": [segment.pk]}
    strategies.add_strategy("occult", "occult-flag", "production", given, caller=SYSTEM)
    dependencies.add_dependency("occult", "occult-child", {"feature": "occult-flag"}, caller=SYSTEM)
    on = [{"flag": name, "enabled": True, "variant": None} | NOW for name in ("cart", "occult-flag")]
    SavedContext.objects.create(name="Everybody", context={"userId": "42"}, expectations=on)
    SavedContext.objects.create(name="occult persona", project=occult, context={}, expectations=on[1:])
    moment = timezone.now()
    update_segment(segment.pk, {"constraints": []}, caller=SYSTEM)
    archive.archive_flags("occult", ["occult-gone"], caller=SYSTEM)
    archive.delete_flags("occult", ["occult-gone"], caller=SYSTEM)
    for project, name in places[:2]:
        environments.disable_flag(project, name, "production", caller=SYSTEM)
    return moment


def everything(then: datetime) -> Iterator[tuple[str, dict[str, Any]]]:
    """Requests that name nothing, and so are about all that the caller may read."""
    past = NOW | {"at": then.isoformat()}
    for sides in ({"from": NOW, "to": NOW}, {"from": past, "to": NOW}, {"from": NOW, "to": past}):
        for contexts in (SOMEBODY, {"generated": True}, {"saved": ["Everybody"]}):
            yield COMPARE, sides | {"contexts": contexts}
    for at in ({}, {"at": then.isoformat()}):
        for projects in ({}, {"projects": "*"}):
            yield PLAYGROUND, NOW | at | projects | {"context": {"userId": "42"}}
    yield CHECK, {}
    yield CHECK, {"contexts": ["Everybody"]}
    yield EXPORT, NOW | {"features": ["cart"]}
    yield EXPORT, NOW | {"project": "shop"}
    yield "/api/admin/events/search", {}


def test_nothing_of_other_projects_is_told(api: dict[str, APIClient], then: datetime) -> None:
    told = 0
    for url, body in everything(then):
        answer = api["reader"].post(url, body)
        assert answer.status_code == 200, (url, body, answer.content)
        assert SECRET not in answer.content, (url, body)
        told += SECRET in api["viewer"].post(url, body).content
    assert told > 10  # who may read it is told


def test_lists_and_pages(api: dict[str, APIClient], browse: Any, then: datetime) -> None:
    reader = browse("reader")
    for projects in ([], ["*"], ["shop"], ["shop", "occult"]):
        make_integration("https://receiver.example.org/hook", projects=projects)
    for path in ("playground/contexts", "events", "segments", "search/features", "projects", "addons"):
        assert SECRET not in api["reader"].get(f"/api/admin/{path}").content, path
    asked = f"?from=production&from-at={then:%Y-%m-%dT%H:%M:%SZ}&to=production&users=10"
    for path in ("", "projects/", f"playground/who-changes/{asked}", "playground/expectations/", "activity/"):
        text = reader.get(f"/{path}").content
        assert SECRET not in text, path
    assert [len(api[name].get("/api/admin/addons").json()["addons"]) for name in ("reader", "viewer")] == [
        3,
        4,
    ]
    hidden = Integration.objects.get(projects=["shop", "occult"]).pk
    assert [
        api[name].get(f"/api/admin/addons/{hidden}").status_code for name in ("outsider", "reader", "viewer")
    ] == [404, 404, 200]
    for path in ("", "versions?event=1", "revert?event=1"):
        assert reader.get(f"/projects/occult/features/occult-flag/{path}").status_code == 404


@pytest.mark.parametrize(
    ("url", "body", "place"),
    [
        (COMPARE, {"flag": "occult-flag"}, "flag"),
        (COMPARE, {"projects": ["occult"]}, "projects"),
        (COMPARE, {"contexts": {"saved": ["occult persona"]}}, "contexts.saved[0]"),
        (COMPARE, {"to": NOW | {"draft": {"flag": "occult-flag"}}}, "to.draft.flag"),
        (CHECK, {"projects": ["occult"]}, "projects"),
        (CHECK, {"contexts": ["occult persona"]}, "contexts[0]"),
    ],
)
def test_what_is_named_does_not_exist(
    api: dict[str, APIClient], then: datetime, url: str, body: Any, place: str
) -> None:
    rest = {"from": NOW, "to": NOW, "contexts": SOMEBODY} if url == COMPARE else {}
    [problem] = refused(api["reader"].post(url, rest | body), 400, "ValidationError")["details"]
    assert problem["path"] == place
    assert "not found" in problem["message"]


@pytest.mark.parametrize(
    ("url", "body"),
    [
        ("/api/admin/segments", {"name": "new", "constraints": []}),
        ("/api/admin/playground/contexts", {"name": "new", "context": {}}),
    ],
)
def test_what_is_made_elsewhere(api: dict[str, APIClient], then: datetime, url: str, body: Any) -> None:
    """A project that may not be read, and one that does not exist, are the same."""
    occult, nowhere = (
        refused(api["owner"].post(url, body | {"project": project}), 403, "NoAccessError")["message"]
        for project in ("occult", "nowhere")
    )
    assert occult == nowhere
    assert SECRET not in occult.lower().encode()


def test_segments_of_drafts(api: dict[str, APIClient], then: datetime) -> None:
    """Neither can a draft change one of another project, nor use it."""
    key = Segment.objects.get(name="occult-segment").pk
    for draft in (
        {"segments": [{"id": key, "constraints": []}]},
        {"flag": "cart", "strategies": [{"name": "default", "segments": [key]}]},
    ):
        body = {"from": NOW, "to": NOW | {"draft": draft}, "contexts": SOMEBODY}
        record = refused(api["reader"].post(COMPARE, body), 400, "ValidationError")
        assert f"segment {key} not found" in record["message"]
