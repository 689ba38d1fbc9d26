"""Validating an import, checking a file and planning a promotion name what refuses them as a whole, having tried it."""

import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext

from flagadmin.core.errors import Problem, ValidationError
from importer.models import ImportRun
from importer.runs import try_it
from projects.models import Flag, ProjectEnvironment, Strategy
from releases.models import ChangeRequest
from releases.requests import propose
from tests.playground.saved_contexts.guarded import an_import, cart
from tests.support.flags import add_strategy

__all__ = ["cart"]
pytestmark = pytest.mark.django_db(transaction=True)
IMPORT, VALIDATE = "/api/admin/features-batch/import", "/api/admin/features-batch/validate"
PROMOTE = "/api/admin/projects/shop/environments/promote"
PROMOTION = {"from": "development", "to": "production", "features": ["cart"]}
PLAN = {**PROMOTION, "planOnly": True}
ANYWAY = "?ignoreExpectations=true"


def guard(**policy: Any) -> None:
    ProjectEnvironment.objects.filter(project="shop", environment="production").update(**policy)


def say(answer: Any) -> list[str]:
    return [error["message"] for error in answer.json()["errors"]]


@pytest.fixture
def nobody(cart: Flag) -> Flag:
    """In development, cart is for nobody of whom something is expected."""
    only = [{"contextName": "userId", "operator": "IN", "values": ["7"]}]
    add_strategy(cart, "development", name="default", constraints=only)
    return cart


def test_validating_names_expectations_that_the_import_would_break(api, cart):
    answer = api["owner"].post(VALIDATE, an_import())
    [error] = answer.json()["errors"]
    assert error["message"].startswith("This breaks 2 expectations, which project shop refuses.")
    assert "cart: " in error["affectedItems"][0], error
    assert cart.environments.get(environment="production").enabled
    assert not ImportRun.objects.exists()
    assert api["owner"].post(IMPORT, an_import()).status_code == 409


def test_validating_what_is_imported_anyway_finds_nothing(api, cart):
    assert say(api["owner"].post(VALIDATE + ANYWAY, an_import())) == []
    assert cart.environments.get(environment="production").enabled
    assert api["owner"].post(IMPORT + ANYWAY, an_import()).status_code == 200


def test_validating_what_becomes_a_draft_makes_none(api, cart):
    guard(required_approvals=1)
    assert say(api["owner"].post(VALIDATE + ANYWAY, an_import())) == []
    assert not ChangeRequest.objects.exists()
    assert "changeRequest" in api["owner"].post(IMPORT + ANYWAY, an_import()).json()


def test_what_a_draft_leaves_out_is_named(api, cart):
    guard(required_approvals=1)
    body = an_import()
    body["data"]["features"].append({"name": "new"})
    body["data"]["features"][0]["description"] = "Pay"
    [*_, warning] = api["owner"].post(VALIDATE + ANYWAY, body).json()["warnings"]
    assert "leaves out the rest" in warning["message"]
    assert warning["affectedItems"] == ["cart", "new"]
    assert api["owner"].post(IMPORT + ANYWAY, body).json()["leftOut"] == ["cart", "new"]
    assert not Flag.objects.filter(name="new").exists()


def test_more_changes_than_a_request_has_are_refused_before_one_is_added(api, cart, monkeypatch):
    guard(required_approvals=1)
    monkeypatch.setattr(propose, "MAX_CHANGES", 0)
    with CaptureQueriesContext(connection) as queries:
        [message] = say(api["owner"].post(VALIDATE + ANYWAY, an_import()))
    assert message == "A change request has at most 0 changes, not 3."
    assert not any('INTO "releases_change"' in query["sql"] for query in queries)


def test_where_nothing_is_refused_as_a_whole_a_plan_of_a_promotion_tries_nothing(api, nobody):
    nobody.project.refuse_broken_expectations = False
    nobody.project.save()
    with CaptureQueriesContext(connection) as queries:
        assert say(api["owner"].post(PROMOTE, PLAN)) == []
    assert not any("importer_importrun" in query["sql"] for query in queries)


@pytest.mark.parametrize(("url", "body"), [(VALIDATE, an_import()), (PROMOTE, PLAN)])
def test_maintenance_is_no_error_of_what_is_checked(api, nobody, url, body):
    assert api["admin"].post("/api/admin/maintenance", {"enabled": True}).status_code == 204
    answer = api["owner"].post(url + ANYWAY, body)
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "60")


def test_problems_without_a_path_are_listed_as_they_are():
    def refuse() -> None:
        raise ValidationError(details=[Problem("title", "is missing"), Problem("", "and 3 more")])

    _, [error] = try_it(refuse)
    assert error["affectedItems"] == ["title: is missing", "and 3 more"]


def test_a_plan_of_a_promotion_names_broken_expectations(api, nobody):
    before = list(Strategy.objects.values())
    plan = api["owner"].post(PROMOTE, PLAN)
    assert [text[:26] for text in say(plan)] == ["This breaks 2 expectations"]
    assert list(Strategy.objects.values()) == before
    assert api["owner"].post(PROMOTE, PROMOTION).status_code == 409
    promoted = api["owner"].post(PROMOTE + ANYWAY, PROMOTION, headers={"If-Match": plan["ETag"]})
    assert promoted.status_code == 200, promoted.content


def test_a_plan_of_a_promotion_names_the_change_request_that_is_needed(api, nobody):
    guard(required_approvals=1)
    [message] = say(api["owner"].post(PROMOTE, PLAN))
    assert message.startswith("Changes of production in project shop need a change request.")
    assert api["owner"].post(PROMOTE, PROMOTION).status_code == 403


def test_a_plan_of_a_promotion_names_a_missing_comment(api, nobody):
    guard(comment_required=True)
    [message] = say(api["owner"].post(PROMOTE, PLAN))
    assert message.startswith("Shop (production) requires a comment on each change.")
    said = {"X-Comment": "As tried in development"}
    assert say(api["owner"].post(PROMOTE + ANYWAY, PLAN, headers=said)) == []
    assert api["owner"].post(PROMOTE + ANYWAY, PROMOTION, headers=said).status_code == 200


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "export.json"
    path.write_text(json.dumps(an_import()))
    return path


def test_checking_a_file_refuses_what_importing_it_would(cart, file):
    with pytest.raises(CommandError, match="This breaks 2 expectations") as refused:
        call_command("import_flags", str(file), "--check")
    assert refused.value.returncode == 2
    assert cart.environments.get(environment="production").enabled


def test_checking_a_file_takes_the_options_of_importing_it(cart, file, capsys):
    guard(comment_required=True)
    with pytest.raises(CommandError, match="requires a comment"):
        call_command("import_flags", str(file), "--check", "--ignore-expectations")
    call_command("import_flags", str(file), "--check", "--ignore-expectations", "--comment", "Off")
    assert "This file can be imported." in capsys.readouterr().out
    assert cart.environments.get(environment="production").enabled
