"""A private project does not exist for somebody who is neither its member nor an admin, whatever their root role."""

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from rest_framework.test import APIClient

from flagadmin.core.audit.models import AuditEvent
from groups.access import Caller
from groups.models import ApiToken, Grant, Group, Role, RolePermission, User
from groups.permissions import BuiltIn, Permission, Scope
from importer.models import ImportRun
from integrations.models import Delivery, Signal, SignalRule, SignalSource
from integrations.signals.actions import create_source, delete_source, make_rule_document, save_rule
from integrations.signals.receive import receive_signal
from playground.models import Analysis, SavedContext
from playground.saved_contexts.actions import create_saved_context, delete_saved_context, update_saved_context
from projects.applications.store_report import store_report
from projects.deletion.execute import delete_project
from projects.flags.actions import NewFlag, create_flag
from projects.flags.copies.move import move_flag
from projects.models import (
    ContextField,
    Flag,
    FlagEnvironment,
    FlagTag,
    Project,
    ProjectEnvironment,
    Segment,
    Strategy,
)
from projects.projects.actions import update_project
from projects.tokens import actions as tokens
from releases.models import ChangeRequest, ReleasePlan, ReleaseTemplate
from tests.flagadmin.security.batches import undone
from tests.flagadmin.security.calls import calls, send
from tests.flagadmin.security.routes import pages, routes
from tests.flagadmin.security.world import address, build, make_analysis
from tests.integrations.mcp.examples import EXAMPLES
from tests.support.applications import report_of
from tests.support.cast import client, log_in, make_group, make_project, make_token, make_user
from tests.support.flags import make_flag
from tests.support.mcp_client import talk
from tests.support.receiver import make_integration
from tests.support.records import refused
from tests.support.signals import TOKEN, make_alert, make_body

SYSTEM = Caller.system()
SECRET = b"occult"
"""The beginning of every name of the private project and of what belongs to it."""
ASKED = "ccul"
"""What a filter or search is asked for, which is no name by itself."""
_NUMBER, _NAME = 987654321, "nothing"
NOTHING: dict[str, Any] = {
    **dict.fromkeys(
        ("project", "flag", "archived flag", "parent", "application", "project context field"), _NAME
    ),
    **dict.fromkeys(
        ("segment", "saved context", "change request", "change", "event", "link", "signal rule"), _NUMBER
    ),
}
"""What stands in addresses for what does not exist."""
OWNED = tuple(NOTHING)


@pytest.fixture
def world(people: Any) -> dict[str, Any]:
    occult = make_project("occult-lab", name="Occult lab", description="occult works")
    made = build(occult)
    for key, name in (("cart", "occult-cart"), ("gone", "occult-gone"), ("checkout", "occult-parent")):
        Flag.objects.filter(name=key).update(name=name)
    names = {"flag": "occult-cart", "archived flag": "occult-gone", "parent": "occult-parent"}
    Segment.objects.filter(pk=made["segment"]).update(name="occult-segment", project=occult)
    Strategy.objects.filter(pk=made["strategy"]).update(title="occult strategy")
    FlagTag.objects.update(value="occult-tag")
    SavedContext.objects.filter(pk=made["saved context"]).update(name="occult persona", project=occult)
    ContextField.objects.filter(name=made["project context field"]).update(name="occult-field")
    ReleasePlan.objects.update(name="occult plan")
    ReleaseTemplate.objects.filter(project=occult).update(name="occult template")
    ChangeRequest.objects.update(title="occult request")
    ImportRun.objects.update(file_name="occult.json", caller_name="occult robot")
    ApiToken.objects.filter(name="of shop").update(name="occult token")
    store_report(report_of(["occult-app"], ["occult-cart"], "i-1", timezone.now()), now=timezone.now())
    create_flag("occult-lab", NewFlag(name="occult-new"), caller=SYSTEM)
    # What everybody may read, but only the private project uses.
    shared = Segment.objects.create(name="shared", constraints=[])
    custom = Role.objects.get(pk=made["role"])
    Strategy.objects.get(pk=made["strategy"]).segments.add(shared)
    Strategy.objects.create(
        flag_id=Flag.objects.get(name="occult-new").pk, environment_id="production", name="custom"
    )
    Grant.objects.create(role=custom, project=occult, user=people["outsider"])
    Grant.objects.create(role=custom, project=occult, group=Group.objects.get(pk=made["group"]))
    tokens.create_token(
        tokens.NewToken(
            name="both", kind="backend", projects=("shop", "occult-lab"), environment="production"
        ),
        caller=SYSTEM,
    )
    watch_with_rules(SignalSource.objects.get(pk=made["signal source"]), made["signal rule"], people)
    expect_of_its_flags()
    told = AuditEvent.objects.filter(project="occult-lab").first()
    Delivery.objects.create(integration_id=made["integration"], event_id=told.pk, sent_at=timezone.now())
    make_integration("https://occult.example.org/hook", projects=["occult-lab"])
    update_project("occult-lab", {"mode": "private"}, caller=SYSTEM)
    FlagEnvironment.objects.filter(flag__name="occult-cart").update(enabled=True)
    ProjectEnvironment.objects.filter(project=occult, environment="production").update(required_approvals=1)
    role = Role.objects.create(name="Everything but admin", type="root-custom")
    RolePermission.objects.bulk_create(
        RolePermission(role=role, permission=permission)
        for permission in Permission
        if permission.scope is Scope.ROOT and permission is not Permission.ADMIN
    )
    make_user("keeper", root_role=role.pk)
    return (
        made
        | names
        | {"project context field": "occult-field", "application": "occult-app", "shared segment": shared.pk}
    )


def watch_with_rules(source: SignalSource, rule_id: int, people: Any) -> None:
    """The rule becomes one of the private project and has acted. Another source with such rules has been deleted."""
    rule = SignalRule.objects.get(pk=rule_id)
    place = {"project": "occult-lab", "flag": "occult-cart", "environment": "production"}
    values = place | {
        "name": "occult rule",
        "match": {"labels.team": "occult"},
        "then": "note",
        "enabled": True,
    }
    admin = Caller(user=people["admin"])
    save_rule(source.pk, values, rule_id=rule.pk, caller=admin)
    receive_signal(source, make_body(make_alert(labels={"team": "occult"})))
    Signal.objects.update(body={})
    old = SignalRule.objects.create(source=source, **values | {"name": "occult old"})
    Signal.objects.create(
        source=source,
        body={},
        results=[
            {"rule": "occult gone", "flag": "occult-cart", "environment": "production", "result": "noted"}
        ],
    )
    other, _ = create_source("other", "generic", caller=SYSTEM)
    plain = values | {"name": "plain", "match": {"labels.team": "plain"}, "project": "shop", "flag": "seen"}
    make_flag("seen", project=Project.objects.get(pk="shop"))
    moved = save_rule(other.pk, values, caller=admin)
    save_rule(other.pk, plain, rule_id=moved.pk, caller=admin)
    save_rule(other.pk, values | {"name": "occult other"}, caller=admin)
    document = make_rule_document(old)
    kinds = [
        ("signal-source-updated", document, document | plain),
        ("signal-source-updated", None, {"token": "replaced", "suspended": ["occult rule"]}),
        ("signal-source-deleted", {"name": "other", "rules": [document]}, None),
    ]
    for kind, before, after in kinds:  # as they were recorded before 1.4
        AuditEvent.objects.create(type=kind, actor_name="x", subject=source.name, before=before, after=after)
    delete_source(other.pk, caller=SYSTEM)
    SignalRule.objects.filter(pk=rule.pk).update(suspended_at=timezone.now(), suspended_by="x")


def expect_of_its_flags() -> None:
    """A saved context of no project expects something of flags of the private project, and another is deleted."""
    flags = [
        make_flag(name, project=Project.objects.get(pk="occult-lab")).name
        for name in ("occult-1", "occult-2")
    ]
    expected = [{"flag": flag, "environment": "production", "enabled": True} for flag in flags]
    for name in ("everybody", "nobody"):
        values = {"name": name, "context": {"userId": "1"}, "expectations": expected}
        saved = create_saved_context(values, caller=SYSTEM)
        update_saved_context(saved.pk, {"note": "changed"}, caller=SYSTEM)
    delete_saved_context(saved.pk, caller=SYSTEM)


@pytest.fixture(params=["viewer", "editor", "keeper"])
def person(request: Any, world: Any) -> User:
    return User.objects.get(username=request.param)


def tell(answer: Any) -> bytes:
    content = b"".join(answer) if getattr(answer, "streaming", False) else answer.content
    return bytes(content)


def get(person: User) -> Callable[[bool, str], Any]:
    api, browser = client(make_token("personal", user=person)), log_in(Client(), person)

    def answer(is_api: bool, path: str) -> Any:
        with undone():
            return (api if is_api else browser).get(path)

    return answer


def say(answer: Any, places: dict[str, Any], is_api: bool) -> str:
    """The answer of the API without the names in the address and the id of an error."""
    if not is_api:
        return ""
    record = answer.json()
    text = record.get("message") or json.dumps(record)
    for key in OWNED:
        if "message" in record or isinstance(places[key], str):
            text = re.sub(rf"\b{re.escape(str(places[key]))}\b", "…", text)
    return str(text)


@pytest.mark.exhaustive
def test_no_address_tells_of_it_and_its_own_are_those_of_nothing(person: User, world: dict[str, Any]) -> None:
    """As they are, and asked for part of a name; with the status and, but for the names, the message of nothing."""
    nothing = world | {key: NOTHING[key] for key in OWNED}
    answer_to, faults = get(person), []
    walked = compared = 0
    for is_api, route in [
        *((True, each) for each in routes("api/admin/")),
        *((False, each) for each in pages()),
    ]:
        if "get" not in route.methods:
            continue
        path, other = address(route, world), address(route, nothing)
        there = answer_to(is_api, path)
        if SECRET.decode() not in path:
            asked = answer_to(is_api, f"{path}?q={ASKED}&query={ASKED}&search={ASKED}&text={ASKED}")
            for answer in (there, asked):
                walked += answer.status_code == 200
                if answer.status_code >= 500 or SECRET in tell(answer).lower():
                    faults.append(
                        f"{path}?{answer.request['QUERY_STRING']} tells of it: {answer.status_code}"
                    )
        if path != other:
            compared += 1
            not_there = answer_to(is_api, other)
            texts = [there.status_code, not_there.status_code]
            if texts[0] == texts[1] and (texts[0] == 200 or (is_api and texts[0] not in (403, 405))):
                texts = [say(there, world, is_api), say(not_there, nothing, is_api)]
            if texts[0] != texts[1]:
                faults.append(f"{route} differs: {texts[0]}, not {texts[1]}")
    assert not faults, "\n".join(faults)
    assert walked > 150
    assert compared > 100


def test_no_change_tells_of_it(world: dict[str, Any]) -> None:
    """Not even a refused one: of a segment, strategy type or environment that only its flags use, for example."""
    api, told = client(make_token("personal", user=User.objects.get(username="keeper"))), []
    places = world | {"segment": world["shared segment"]}
    for method, route in calls(routes("api/admin/"), ("post", "put", "patch", "delete")):
        if SECRET.decode() not in address(route, places):
            answer = send(api, method, route, places)
            if SECRET in tell(answer).lower():
                told.append((method, str(route), answer.status_code, tell(answer)[:300]))
    assert told == []


def test_tools_do_not_tell_of_it(world: dict[str, Any]) -> None:
    viewer = client(make_token("personal", user=User.objects.get(username="viewer")))
    there = json.dumps(EXAMPLES).replace('"cart"', '"occult-cart"').replace('"shop"', '"occult-lab"')
    nowhere = json.dumps(EXAMPLES).replace('"cart"', '"nothing"').replace('"shop"', '"nothing"')

    def ask(examples: str) -> list[str]:
        async def talking(connected: Any) -> list[str]:
            results = [await connected.call_tool(name, given) for name, given in json.loads(examples).items()]
            return [f"{result.is_error} {result.content[0].text}" for result in results]

        with undone():
            return talk(viewer, talking)

    assert [re.sub("occult-(cart|lab)", "nothing", text) for text in ask(there)] == ask(nowhere)
    told = ask(json.dumps(EXAMPLES).replace('"query": "cart"', f'"query": "{ASKED}"'))
    assert SECRET.decode() not in " ".join(told).lower()


@pytest.mark.parametrize("name", ["admin", "admin_token", "member", "in a group"])
def test_members_and_admins_see_it(api: Any, people: Any, world: dict[str, Any], name: str) -> None:
    if name == "member":
        Grant.objects.create(role_id=BuiltIn.READER, project_id="occult-lab", user=people["member"])
    if name == "in a group":
        group = make_group("Readers of occult things", people["viewer"])
        Grant.objects.create(role_id=BuiltIn.READER, project_id="occult-lab", group=group)
    reader = api["viewer" if name == "in a group" else name]
    assert "occult-lab" in [each["id"] for each in reader.get("/api/admin/projects").json()["projects"]]
    assert reader.get("/api/admin/projects/occult-lab/features/occult-cart").status_code == 200
    assert SECRET in reader.get("/api/admin/search/features?query=occult").content
    assert SECRET in reader.get("/api/admin/events").content


def test_it_stays_private_when_it_is_deleted(api: Any, people: Any, shop: Project) -> None:
    """Its events too, which everybody with a root role reads of other deleted projects."""
    for project, mode in (("occult-old", "private"), ("plain-old", "open")):
        make_project(project, mode=mode)
        delete_project(project, caller=SYSTEM)
    seen = {name: api[name].get("/api/admin/events").content for name in ("viewer", "admin")}
    assert {name: (b"plain-old" in text, b"occult-old" in text) for name, text in seen.items()} == {
        "viewer": (True, False),
        "admin": (True, True),
    }
    record = api["editor"].post("/api/admin/projects", {"id": "occult-old", "name": "Mine"})
    assert record.status_code == 409
    made = api["admin"].post("/api/admin/projects", {"id": "occult-old", "name": "Ours", "mode": "open"})
    assert (made.status_code, made.json()["mode"]) == (201, "private")
    assert b"occult-old" not in api["viewer"].get("/api/admin/events").content
    Project.objects.get(pk="occult-old").save()  # writes all columns
    assert api["viewer"].get("/api/admin/projects/occult-old").status_code == 404
    assert api["admin"].put("/api/admin/projects/occult-old", {"mode": "open"}).status_code == 200
    assert api["viewer"].get("/api/admin/projects/occult-old").status_code == 200
    listed = api["viewer"].get("/api/admin/search/events?project=IS:occult-old").json()["events"]
    assert [event["type"] for event in listed] == ["project-updated", "project-created"]


def test_a_token_for_all_projects_needs_sight_of_all(world: dict[str, Any]) -> None:
    keeper = client(make_token("personal", user=User.objects.get(username="keeper")))
    body = {"tokenName": "all", "type": "backend", "environment": "production"}
    for projects, path in ((["*"], "projects"), (["occult-lab"], "projects[0]")):
        answer = keeper.post("/api/admin/api-tokens", body | {"projects": projects})
        assert [problem["path"] for problem in refused(answer, 400, "ValidationError")["details"]] == [path]
    assert keeper.post("/api/admin/api-tokens", body | {"projects": ["shop"]}).status_code == 201


def test_only_members_propose_changes_of_protected_projects(api: Any, shop: Project) -> None:
    make_flag("cart", project=shop)
    url = "/api/admin/projects/shop/environments/production/change-requests"
    change = [{"feature": "cart", "action": "updateEnabled", "payload": {"enabled": True}}]
    assert api["viewer"].post(url, change).status_code == 200
    [draft] = ChangeRequest.objects.values_list("pk", flat=True)
    update_project("shop", {"mode": "protected"}, caller=SYSTEM)
    sent = api["viewer"].put(
        f"/api/admin/projects/shop/change-requests/{draft}/state", {"state": "In review"}
    )
    for answer in (api["viewer"].post(url, change), sent):
        assert "only its members and admins" in refused(answer, 403, "NoAccessError")["message"]
    assert api["viewer"].get("/api/admin/projects/shop").json()["mode"] == "protected"
    assert {api[name].post(url, change).status_code for name in ("reader", "admin")} == {200}


def test_a_change_of_mode_is_in_the_audit_log_and_needs_the_permission(api: Any, shop: Project) -> None:
    url = "/api/admin/projects/shop"
    refused(api["member"].put(url, {"mode": "private"}), 403, "NoAccessError")
    assert api["viewer"].get(url).status_code == 200
    assert api["owner"].put(url, {"mode": "private"}).status_code == 200
    assert api["viewer"].get(url).status_code == 404  # at once, although the token is remembered
    event = AuditEvent.objects.get(type="project-updated")
    assert (event.before["mode"], event.after["mode"]) == ("open", "private")
    assert api["admin"].put(url, {"mode": "open"}).status_code == 200
    assert api["viewer"].get(url).status_code == 200


def test_only_a_sender_who_sees_it_is_told_of_its_rules(world: dict[str, Any], people: Any) -> None:
    """The creator of the source's token is the sender."""
    source, told = SignalSource.objects.get(pk=world["signal source"]), {}
    for name in ("viewer", "admin"):
        SignalSource.objects.update(token_by=people[name], token_by_name=name)
        answer = APIClient().post(
            f"/api/signals/{source.name}",
            make_body(make_alert(labels={"team": "occult"}, fingerprint=name)),
            HTTP_AUTHORIZATION=TOKEN,
        )
        told[name] = [result["rule"] for result in answer.json()["results"]]
    assert told == {"viewer": [], "admin": ["occult rule", "occult old"]}


def test_its_integrations_are_those_that_name_it(browse: Any, shop: Project) -> None:
    """Those of all projects send none of its changes."""
    for name, projects in (("all", []), ("star", ["*"]), ("named", ["shop"])):
        make_integration(f"https://{name}.example.org/hook", projects=projects, description=f"to {name}")
    listed = {}
    for mode in ("open", "private"):
        update_project("shop", {"mode": mode}, caller=SYSTEM)
        text = tell(browse("admin").get("/projects/shop/settings/integrations/"))
        listed[mode] = [name for name in ("all", "star", "named") if f"to {name}".encode() in text]
    assert listed == {"open": ["all", "star", "named"], "private": ["named"]}


def test_a_moved_flags_analysis_names_no_flags_of_it(api: Any, shop: Project) -> None:
    """Those that divided the same units."""
    flag = make_flag("cart", project=make_project("occult-lab", mode="private"))
    note = {
        "name": "interaction",
        "state": "note",
        "sentence": "Other flags divide the same units: occult-cart.",
    }
    kept = {"name": "shares", "state": "passed", "sentence": "As designed."}
    analysis = make_analysis(flag)
    Analysis.objects.update(state="done", result={"checks": [note, kept]})
    url = f"features/cart/analyses/{analysis.pk}"
    before = api["admin"].get(f"/api/admin/projects/occult-lab/{url}").json()
    assert before["result"]["checks"] == [note, kept]
    move_flag("occult-lab", "cart", "shop", caller=SYSTEM)
    after = api["viewer"].get(f"/api/admin/projects/shop/{url}").json()
    assert after["result"]["checks"] == [kept]
