"""Flags as code by API: what is read is what can be applied, all of it or nothing."""

from typing import Any

import pytest

from flagadmin.client.report import describe_who_changes
from flagadmin.core.audit.models import AuditEvent
from projects.models import Flag, FlagEnvironment, Project, ProjectEnvironment, Segment
from releases.models import ChangeRequest
from tests.support.as_code import FIELD, FLAG, SEGMENT, URL
from tests.support.cast import make_project

pytestmark = pytest.mark.django_db


def directory(**more: Any) -> dict[str, Any]:
    return {
        "flags": [{"project": "shop", "flag": FLAG}],
        "segments": [SEGMENT],
        "contextFields": [FIELD],
    } | more


def post(api: Any, what: str, body: Any, who: str = "admin", **headers: str) -> Any:
    return api[who].post(f"{URL}/{what}", body, headers=headers)


def test_what_is_applied_is_read_again_the_same(api: Any) -> None:
    planned = post(api, "plan", directory())
    assert planned.status_code == 200, planned.content
    assert not Flag.objects.exists()
    assert not Segment.objects.exists()
    applied = post(api, "apply", directory(fingerprint=planned.json()["fingerprint"]))
    assert applied.status_code == 200, applied.content
    assert applied.json()["changes"] == planned.json()["changes"]
    read = api["viewer"].get(URL, {"project": "shop"}).json()
    assert read["flags"] == [{"project": "shop", "flag": FLAG}]
    assert (read["segments"], read["used"]["segments"]) == ([SEGMENT], ["beta-users"])
    assert [entry for entry in read["contextFields"] if entry["name"] == "country"] == [FIELD]
    assert read.pop("used")["contextFields"] == ["country", "userId"]
    again = post(api, "plan", read).json()
    assert (again["changes"], again["whoChanges"]) == ([], [])


def test_all_events_of_an_apply_are_of_one_request(api: Any) -> None:
    post(api, "apply", directory(), **{"X-Comment": "By CI"})
    events = AuditEvent.objects.filter(comment="By CI")
    assert {event.type for event in events} >= {"feature-created", "segment-created", "context-field-created"}
    assert len({event.request_id for event in events}) == 1


def test_a_list_of_a_segment_is_applied_and_reported_by_its_difference(api: Any) -> None:
    values = [str(number) for number in range(1_500)]
    segment = SEGMENT | {"constraints": [SEGMENT["constraints"][0] | {"values": values}]}
    assert post(api, "apply", directory(segments=[segment])).status_code == 200
    assert api["viewer"].get(URL, {"project": "shop"}).json()["segments"] == [segment]

    shorter = SEGMENT | {"constraints": [SEGMENT["constraints"][0] | {"values": ["new", *values[1:]]}]}
    planned = post(api, "plan", directory(segments=[shorter])).json()
    (line,) = [line for line in planned["changes"] if line["kind"] == "segment"]
    parts = {part["part"]: part["after"] for part in line["changes"]}
    assert parts.keys() == {"constraints", "listChange"}
    assert parts["listChange"] == '{"added":1,"removed":1,"firstAdded":["new"],"firstRemoved":["0"]}'


def change(api: Any, name: str = "checkout-redesign", **members: Any) -> dict[str, Any]:
    """The directory as it is stored, with another member of a flag."""
    read = api["admin"].get(URL, {"project": "shop"}).json()
    [entry] = [entry for entry in read["flags"] if entry["flag"]["name"] == name]
    return {"flags": [{**entry, "flag": entry["flag"] | members}]}


def switch(environment: str, *, on: bool, **more: Any) -> dict[str, Any]:
    return {"environments": {environment: {"enabled": on, "strategies": [{"name": "default"}], **more}}}


def test_a_plan_names_the_fields_and_who_changes(api: Any) -> None:
    post(api, "apply", directory())
    planned = post(api, "plan", change(api, description="Two pages", **switch("production", on=True))).json()
    [line] = planned["changes"]
    assert (line["action"], line["name"], line["environment"]) == (
        "change",
        "checkout-redesign",
        "production",
    )
    assert {"part": "description", "before": "One page", "after": "Two pages"} in line["changes"]
    [place] = planned["whoChanges"]
    assert (place["environment"], place["changed"], place["counts"]) == (
        "production",
        place["users"],
        {"offToOn": place["users"]},
    )


def test_a_plan_says_what_generated_users_do_not_tell(api: Any) -> None:
    post(api, "apply", directory())
    pattern = [{"contextName": "userId", "operator": "STR_STARTS_WITH", "values": ["acme-"]}]
    strategies = [{"name": "default", "constraints": pattern}]
    planned = post(api, "plan", change(api, **switch("production", on=True, strategies=strategies))).json()
    [place] = planned["whoChanges"]
    [sentence] = place["unmeasured"]
    assert sentence.startswith("checkout-redesign has the condition userId")
    assert describe_who_changes(place).endswith(f"; cannot be measured: {sentence}")


def test_environments_that_are_left_out_and_other_flags_stay(api: Any) -> None:
    post(api, "apply", directory())
    other = {"project": "shop", "flag": {"name": "other", **switch("development", on=True)}}
    post(api, "apply", {"flags": [other]})
    before = api["viewer"].get(URL, {"project": "shop"}).json()
    post(api, "apply", change(api, "other", description="Changed", environments={}))
    after = api["viewer"].get(URL, {"project": "shop"}).json()
    assert after["flags"][0] == before["flags"][0]
    assert after["flags"][1]["flag"] == before["flags"][1]["flag"] | {"description": "Changed"}


def test_flags_that_left_are_archived_when_they_are_named(api: Any) -> None:
    post(api, "apply", directory())
    archive = {"archive": [{"project": "shop", "name": "checkout-redesign"}]}
    assert post(api, "plan", archive).json()["changes"] == [
        {"action": "archive", "kind": "flag", "name": "checkout-redesign", "project": "shop"}
    ]
    assert Flag.objects.active().count() == 1
    post(api, "apply", archive)
    assert Flag.objects.active().count() == 0


def test_a_segment_changes_and_who_changes_with_it(api: Any) -> None:
    post(api, "apply", directory())
    post(
        api,
        "apply",
        change(
            api, **switch("production", on=True, strategies=[{"name": "default", "segments": ["beta-users"]}])
        ),
    )
    planned = post(
        api, "plan", {"segments": [SEGMENT | {"constraints": []}], "flags": change(api)["flags"]}
    ).json()
    assert [(line["kind"], line["changes"][0]["part"]) for line in planned["changes"]] == [
        ("segment", "constraints")
    ]
    [place] = planned["whoChanges"]
    assert place["flags"][0]["name"] == "checkout-redesign"


def test_who_changes_in_projects_that_are_not_in_the_directory_is_counted_too(api: Any) -> None:
    """A segment of all projects can be used anywhere."""
    post(api, "apply", directory())
    make_project("web")
    entry = {"project": "web", "flag": FLAG | {"name": "banner"}}
    used = switch("production", on=True, strategies=[{"name": "default", "segments": ["beta-users"]}])
    applied = post(api, "apply", {"flags": [entry | {"flag": entry["flag"] | used}]})
    assert applied.status_code == 200, applied.content
    # A file of the other project is not in this directory, only the segment.
    changed = {"segments": [SEGMENT | {"constraints": []}], "flags": change(api)["flags"]}
    for what in ("plan", "apply"):
        places = {place["project"]: place for place in post(api, what, changed).json()["whoChanges"]}
        assert [flag["name"] for flag in places["web"]["flags"]] == ["banner"]
        assert places["web"]["changed"] > 0
    assert post(api, "plan", changed).json()["whoChanges"] == []
    described = {"segments": [SEGMENT | {"constraints": [], "description": "Everybody"}]}
    planned = post(api, "plan", described).json()
    assert (len(planned["changes"]), planned["whoChanges"]) == (1, [])


def test_a_plan_that_something_has_changed_since_is_a_conflict(api: Any) -> None:
    post(api, "apply", directory())
    wanted = change(api, description="Mine")
    fingerprint = post(api, "plan", wanted).json()["fingerprint"]
    post(api, "apply", change(api, description="Theirs"))
    refused = post(api, "apply", wanted | {"fingerprint": fingerprint})
    assert (refused.status_code, refused.json()["name"]) == (409, "ConflictError")
    assert Flag.objects.get().description == "Theirs"


@pytest.mark.django_db(transaction=True)
def test_of_several_projects_all_or_nothing_is_written(api: Any) -> None:
    make_project("books")
    flags = [
        {"project": "books", "flag": {"name": "fine", **switch("production", on=True)}},
        {
            "project": "shop",
            "flag": {"name": "wrong", **switch("production", on=True, strategies=[{"name": "none"}])},
        },
    ]
    refused = post(api, "apply", {"flags": flags})
    assert refused.status_code == 400
    path = "flags[1].flag.environments.production.strategies[0].name"
    assert [detail["path"] for detail in refused.json()["details"]] == [path]
    assert not Flag.objects.exists()


@pytest.mark.parametrize(
    ("entry", "path"),
    [
        ({"name": "a", "tags": ["none:x1"]}, "flags[0].flag.tags[0].tagType"),
        ({"name": "a", "dependencies": [{"feature": "nothing"}]}, "flags[0].flag.dependencies[0].feature"),
        ({"name": "a", "links": [{"url": "ftp://x"}]}, "flags[0].flag.links[0].url"),
        ({"name": "a b"}, "flags[0].flag.name"),
        ({"name": "a", "enviroments": {}}, "flags[0].flag.enviroments"),
        (
            {
                "name": "a",
                **switch("production", on=True, strategies=[{"name": "default", "segments": ["x"]}]),
            },
            "flags[0].flag.environments.production.strategies[0].segments",
        ),
        ({"name": "a", **switch("nowhere", on=True)}, "flags[0].flag.environments.nowhere"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_wrong_is_named_with_its_place(api: Any, entry: Any, path: str) -> None:
    refused = post(api, "plan", {"flags": [{"project": "shop", "flag": entry}]})
    assert refused.status_code == 400, refused.content
    assert refused.json()["details"][0]["path"] == path


def test_nobody_writes_without_permission(api: Any) -> None:
    post(api, "apply", directory())
    wanted = change(api, **switch("production", on=True))
    for who in ("viewer", "reader"):
        assert post(api, "apply", wanted, who).status_code == 403
    assert post(api, "plan", wanted, "outsider").status_code == 404
    assert api["outsider"].get(URL, {"project": "shop"}).status_code == 400
    assert api["viewer"].get(URL).status_code == 400
    many = api["viewer"].get(URL, {"project": [f"p{number}" for number in range(101)]})
    assert (many.status_code, many.json()["message"]) == (400, "project: must be at most 100, not 101")


@pytest.mark.parametrize("name", ["flag", "segment", "context-field", "flagadmin"])
def test_schemas_need_no_token(api: Any, name: str) -> None:
    schema = api["nobody"].get(f"{URL}/schemas/{name}").json()
    assert schema["additionalProperties"] is False
    assert api["nobody"].get(f"{URL}/schemas/other").status_code == 404


@pytest.fixture
def guarded(shop: Project) -> None:
    ProjectEnvironment.objects.filter(project=shop, environment="production").update(required_approvals=1)


@pytest.mark.django_db(transaction=True)
def test_where_changes_need_a_request_one_is_made(api: Any, guarded: None) -> None:
    body = directory()
    body["flags"][0] = {
        "project": "shop",
        "flag": FLAG | {"environments": FLAG["environments"] | switch("production", on=True)["environments"]},
    }
    planned = post(api, "plan", body).json()
    assert [request["environment"] for request in planned["changeRequests"]] == ["production"]
    assert not ChangeRequest.objects.exists()
    applied = post(api, "apply", body | {"fingerprint": planned["fingerprint"]}).json()
    [request] = applied["changeRequests"]
    assert (request["state"], request["isNew"]) == ("In review", True)
    assert [change["action"] for change in request["changes"]] == ["addStrategy", "updateEnabled"]
    on = FlagEnvironment.objects.filter(enabled=True).values_list("environment_id", flat=True)
    assert list(on) == ["development"], "only what needs no request is written"
    again = post(api, "apply", body).json()
    assert (again["changes"], again["changeRequests"][0]["id"]) == ([], request["id"])
    assert again["changeRequests"][0]["isNew"] is False
    skipped = post(api, "apply", body | {"skipChangeRequests": True})
    assert skipped.status_code == 200, skipped.content
    assert FlagEnvironment.objects.filter(enabled=True).count() == 2


@pytest.mark.django_db(transaction=True)
def test_segments_that_answers_depend_on_are_proposed_too(api: Any, shop: Project) -> None:
    post(api, "apply", directory())
    post(
        api,
        "apply",
        change(
            api, **switch("production", on=True, strategies=[{"name": "default", "segments": ["beta-users"]}])
        ),
    )
    ProjectEnvironment.objects.filter(project=shop, environment="production").update(required_approvals=1)
    other = SEGMENT | {"constraints": [{"contextName": "userId", "operator": "IN", "values": ["3"]}]}
    body = change(api, description="Changed") | {"segments": [other]}
    applied = post(api, "apply", body).json()
    assert [c["action"] for r in applied["changeRequests"] for c in r["changes"]] == ["updateSegment"]
    assert Segment.objects.get().constraints == SEGMENT["constraints"]
    assert Flag.objects.get().description == "Changed"
