"""Projects that refuse changes that break an expectation: every kind of change."""

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.change_checks import BrokenExpectations
from importer.apply.execute import import_body
from importer.body.schemas import read_body
from playground.models import SavedContext
from playground.saved_contexts import expectations
from playground.saved_contexts.expectations import check_expectations, list_expectations
from projects.flags.actions import update_flag
from projects.flags.copies import move
from projects.flags.environments import actions as environments
from projects.models import Project, Segment
from projects.segments.actions import update_segment
from projects.strategies import actions as strategies
from tests.playground.saved_contexts.guarded import (
    NOBODY,
    PLACE,
    WHO,
    an_import,
    cart,
    expected,
    failing,
    failing_in,
    persona,
    strategy,
)
from tests.support.cast import make_project
from tests.support.examples import first_every_day
from tests.support.for_each import for_each
from tests.support.playground import live_flag
from tests.support.racing import BEFORE_COMMIT, race
from tests.support.random_changes import NAMES, RandomChanges

__all__ = ["cart"]


def test_whatever_keeps_expectations_is_saved(cart):
    strategies.add_strategy(*PLACE, {"name": "default"}, caller=WHO)
    environments.disable_flag("shop", "other", "production", caller=WHO)
    import_body(read_body(an_import(enabled=True)), caller=WHO)
    make_project("docs")
    move.move_flag("shop", "other", "docs", caller=WHO)
    assert not failing()


def test_a_flag_is_not_moved_away_from_what_is_expected_of_it(cart):
    """Elsewhere it could be turned off, and be moved back."""
    make_project("docs")
    persona(expected("other"), name="Bea", project=None)
    with pytest.raises(BrokenExpectations) as refusal, transaction.atomic():
        move.move_flag("shop", "other", "docs", caller=WHO)
    [problem] = refusal.value.problems
    assert problem.message.endswith("→ Project shop has no such flag, or it is archived")
    move.move_flag("shop", "other", "docs", caller=WHO.asking(breaks_expectations=True))
    environments.disable_flag("docs", "other", "production", caller=WHO)
    assert failing() == ["other"]


@for_each("project", ["shop", None])
def test_a_flag_is_not_moved_back_differently(cart, project):
    make_project("docs")
    environments.disable_flag("shop", "other", "production", caller=WHO)
    persona(expected("other", enabled=False), name="Bea", project=project)
    move.move_flag("shop", "other", "docs", caller=WHO)
    environments.enable_flag("docs", "other", "production", caller=WHO)
    with pytest.raises(BrokenExpectations, match="shop"), transaction.atomic():
        move.move_flag("docs", "other", "shop", caller=WHO)
    environments.disable_flag("docs", "other", "production", caller=WHO)
    move.move_flag("docs", "other", "shop", caller=WHO)
    assert not failing()


def test_a_flag_of_the_same_name_from_elsewhere(cart):
    """Deleted here, made there, moved here."""
    make_project("docs")
    persona(expected("gone", enabled=False), name="Bea")
    live_flag("gone", "docs")
    with pytest.raises(BrokenExpectations), transaction.atomic():
        move.move_flag("docs", "gone", "shop", caller=WHO)


def test_two_projects_that_refuse(cart):
    """Either side of a move refuses for itself."""
    docs = make_project("docs", refuse_broken_expectations=True)
    persona(expected("other"), name="Bea")
    persona(expected("other", enabled=False), name="Carl", project="docs")
    with pytest.raises(BrokenExpectations) as refusal, transaction.atomic():
        move.move_flag("shop", "other", docs.pk, caller=WHO)
    assert refusal.value.projects == ["docs", "shop"]
    assert [problem.path for problem in refusal.value.problems] == ["Carl", "Bea"]


def test_what_fails_already_does_not_block_and_can_be_mended(cart):
    persona(expected(variant="green"), expected("other", enabled=False), name="Bea", project=None)
    strategies.add_strategy("shop", "other", "production", {"name": "default"}, caller=WHO)
    assert failing() == ["cart", "other"]
    environments.disable_flag("shop", "other", "production", caller=WHO)
    assert failing() == ["cart"]


def test_other_projects_and_their_contexts_are_left_alone(cart):
    make_project("docs")
    live_flag("page", "docs")
    persona(expected("page"), name="Bea", project="docs")
    environments.disable_flag("docs", "page", "production", caller=WHO)
    assert failing() == ["page"]


def test_without_the_setting_nothing_is_read(cart):
    Project.objects.update(refuse_broken_expectations=False)
    with CaptureQueriesContext(connection) as queries:
        environments.disable_flag(*PLACE, caller=WHO)
    assert not [each for each in queries if "savedcontext" in each["sql"] or "projectrevision" in each["sql"]]


def test_only_what_differs_is_evaluated(cart, monkeypatch):
    """A change that evaluates nothing differently costs the reading of what was."""
    monkeypatch.setattr(expectations, "check_against", None)
    update_flag("shop", "cart", {"description": "New"}, caller=WHO)
    environments.disable_flag("shop", "other", "production", caller=WHO)
    with pytest.raises(TypeError), transaction.atomic():
        environments.disable_flag(*PLACE, caller=WHO)


@pytest.mark.parametrize("refusing", [["shop"], ["shop", "docs"]], ids=["one project", "both"])
@pytest.mark.parametrize("seed", first_every_day([0, 3]))
def test_random_changes_break_nothing(shop, seed, refusing):
    """Whatever is changed, by whichever actions one after the other, what a refusing project gives stays as expected."""
    make_project("docs")
    changes = RandomChanges(seed)
    for _ in range(30):
        changes.step()
    projects = Project.objects.filter(pk__in=refusing)
    projects.update(refuse_broken_expectations=True)
    expect_what_is()
    refusals, known = 0, {project: failing_in(project) for project in refusing}
    for _ in range(60):
        before = AuditEvent.objects.count()
        try:
            changes.step()
        except BrokenExpectations:
            refusals += 1
            assert AuditEvent.objects.count() == before
        for project in refusing:
            assert failing_in(project) <= known[project], changes.done
            known[project] = failing_in(project)
        projects.update(refuse_broken_expectations=True)  # of one that was deleted and made again
    assert refusals


def expect_what_is() -> None:
    """A saved context of no project and one of shop expect what all flags give now, and of those that do not exist."""
    places = [(name, where) for name in NAMES for where in ("development", "production")]
    off = [expected(name, enabled=False) | {"environment": where} for name, where in places]
    for name, project in (("Ada", None), ("Bea", "shop")):
        saved = persona(*off, name=name, project=project)
        found = check_expectations(WHO, list_expectations(WHO, contexts=[saved]))
        saved.expectations = [one | {"enabled": not each.met} for one, each in zip(off, found, strict=True)]
        saved.save()


@pytest.mark.django_db(transaction=True)
def test_two_changes_that_only_break_it_together(cart):
    """Ada gets the flag through either strategy. The second change waits for the first, and sees it."""
    SavedContext.objects.all().delete()
    persona(expected())
    second = strategies.add_strategy(*PLACE, {"name": "default"}, caller=WHO)["id"]
    first = strategy()

    def remove(one: str) -> Callable[[], Any]:
        return lambda: strategies.update_strategy(*PLACE, one, {"constraints": NOBODY}, caller=WHO)

    with pytest.raises(BrokenExpectations):
        race(remove(first), remove(second), stop=BEFORE_COMMIT)
    assert not failing()


@pytest.mark.django_db(transaction=True)
def test_a_segment_of_all_projects_and_a_strategy(cart):
    SavedContext.objects.all().delete()
    persona(expected())
    second = strategies.add_strategy(*PLACE, {"name": "default"}, caller=WHO)["id"]
    segment = Segment.objects.get().pk
    with pytest.raises(BrokenExpectations):
        race(
            lambda: strategies.update_strategy(*PLACE, second, {"constraints": NOBODY}, caller=WHO),
            lambda: update_segment(segment, {"constraints": NOBODY}, caller=WHO),
            stop=BEFORE_COMMIT,
        )
    assert not failing()
