"""Every action keeps the comment, and is refused without one where its environment requires one."""

import ast

import pytest
from django.db import transaction

from flagadmin.core.audit.events import EventType
from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.audit.record import Event, copy_all, record, record_all, record_selected
from flagadmin.core.change_checks.comments import CommentRefused
from flagadmin.core.change_options import changing
from projects.models import Environment, ProjectEnvironment
from projects.projects import environments
from tests.playground.saved_contexts.changes import CHANGES
from tests.playground.saved_contexts.guarded import WHO, cart
from tests.support.paths import ROOT

__all__ = ["cart"]

ABOUT_ENVIRONMENTS = {
    "set_default_strategy": lambda: environments.set_default_strategy(
        "shop", "production", {"name": "default"}, caller=WHO
    ),
    "no longer required": lambda: environments.require_comment("shop", "production", False, caller=WHO),
}
EVERY_CHANGE = CHANGES | {name: lambda change=change: change for name, change in ABOUT_ENVIRONMENTS.items()}


def require(environment):
    ProjectEnvironment.objects.filter(environment=environment).update(comment_required=True)


@pytest.mark.parametrize("name", EVERY_CHANGE)
def test_nothing_is_saved_without_a_comment_and_every_event_keeps_it(cart, name, monkeypatch):
    monkeypatch.setattr(WHO, "breaks_expectations", True)
    change = EVERY_CHANGE[name]()
    require("production")
    before = [*AuditEvent.objects.values_list("pk", flat=True)]
    with pytest.raises(CommentRefused, match=r"\(production\)"), transaction.atomic():
        change()
    assert AuditEvent.objects.count() == len(before)
    with changing(comment="PAY-1182"):
        change()
    made = AuditEvent.objects.exclude(pk__in=before)
    assert set(made.values_list("comment", flat=True)) == {"PAY-1182"}


def test_what_is_only_about_another_environment_needs_none(cart):
    ProjectEnvironment.objects.filter(environment="production").update(comment_required=True)
    ProjectEnvironment.objects.get_or_create(
        project_id="shop", environment=Environment.objects.get(name="development")
    )
    environments.set_default_strategy("shop", "development", {"name": "default"}, caller=WHO)
    environments.remove_environment("shop", "development", caller=WHO)


def test_removing_the_environment_needs_one(shop):
    require("development")
    with pytest.raises(CommentRefused):
        environments.remove_environment("shop", "development", caller=WHO)
    assert ProjectEnvironment.objects.filter(project="shop", environment="development").exists()


def test_requiring_it_needs_none(shop):
    environments.require_comment("shop", "production", True, caller=WHO)
    assert ProjectEnvironment.objects.get(project="shop", environment="production").comment_required


@pytest.mark.parametrize(
    "write",
    [
        lambda event: record(event, actor=WHO),
        lambda event: record_all([event, event], actor=WHO),
        lambda event: copy_all([event, event], actor=WHO),
        lambda event: record_selected(
            event.type, "SELECT 'shop', 'cart', NULL::jsonb, NULL::jsonb", [], actor=WHO
        ),
    ],
)
def test_every_way_of_recording_keeps_it(db, write):
    with changing(comment="Because\nof it"):
        write(Event(type=EventType.FEATURE_STALE_ON, project="shop", feature="cart"))
    assert set(AuditEvent.objects.values_list("comment", flat=True)) == {"Because\nof it"}


def test_nothing_else_writes_events():
    """Whatever records an event goes through `record`, which adds the comment."""
    writers = set()
    for package in ("flagadmin", "groups", "projects", "playground", "sdk", "importer"):
        for path in (ROOT / package).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                made = isinstance(node, ast.Call) and ast.unparse(node.func) in (
                    "AuditEvent",
                    "AuditEvent.objects.create",
                    "AuditEvent.objects.bulk_create",
                )
                if made or (isinstance(node, ast.Constant) and "INTO audit_auditevent" in str(node.value)):
                    writers.add(path.relative_to(ROOT).as_posix())
    assert writers == {"flagadmin/core/audit/record.py"}
