"""The gate, with random actions: whatever is done, a guarded environment answers as before, unless a request does it."""

from collections.abc import Callable
from typing import Any

import pytest
from django.core.exceptions import ObjectDoesNotExist
from django.db import transaction

from flagadmin.core.errors import AppError
from groups.access import EVERYTHING, NOTHING, Caller
from projects.definitions import Definitions, read_definitions
from projects.models import Environment, Project, ProjectEnvironment, Segment
from releases.derive import find_differing
from releases.gate_refusal import NeedsChangeRequest, find_skipping
from releases.requests.propose import add_changes
from releases.requests.states import set_state
from tests.support.cast import make_project, make_user
from tests.support.examples import examples, first_every_day
from tests.support.playground import live_flag
from tests.support.random_changes import NAMES, RandomChanges

AUTHOR = Caller.system()


@pytest.fixture
def flags(shop: Any) -> None:
    """Six flags in two projects, on in production, half of them with a segment."""
    make_project("docs")
    segment = Segment.objects.create(name="everybody", constraints=[])
    for number, name in enumerate(NAMES[:6]):
        strategies: list[dict[str, Any]] = [{"name": "flexibleRollout", "parameters": {"rollout": "50"}}]
        if number % 2:
            strategies.append({"name": "default", "segments": [segment]})
        live_flag(name, project=["shop", "docs"][number % 2], strategies=strategies)


def guard(environment: str = "production") -> None:
    ProjectEnvironment.objects.filter(environment=environment).update(required_approvals=0)


def answers() -> dict[tuple[str, str], Definitions]:
    projects = Project.objects.values_list("pk", flat=True)
    names = Environment.objects.values_list("name", flat=True)
    return {(project, name): read_definitions([project], name) for project in projects for name in names}


def differing(before: Any, after: Any) -> set[tuple[str, str]]:
    return {
        place for place in before.keys() & after.keys() if any(find_differing(before[place], after[place]))
    }


def undone(action: Callable[[], Any]) -> tuple[NeedsChangeRequest | None, bool]:
    """The refusal of the action, and whether it could be made at all. Nothing stays."""
    with transaction.atomic():
        try:
            with transaction.atomic():
                action()
            return None, True
        except NeedsChangeRequest as refusal:
            return refusal, True
        except (AppError, IndexError, ObjectDoesNotExist):
            return None, False
        finally:
            transaction.set_rollback(True)


@pytest.mark.parametrize("seed", first_every_day(range(6)))
def test_the_gate_refuses_what_changes_an_answer_and_nothing_else(flags: None, seed: int) -> None:
    changes = RandomChanges(seed)
    allowed = refused = 0
    for _ in range(examples(120)):
        _, action = changes.random.choice(changes.actions)
        choices = changes.random.getstate()
        before = answers()
        guard()
        refusal, possible = undone(action)
        assert answers() == before
        ProjectEnvironment.objects.update(required_approvals=None)
        changes.random.setstate(choices)
        try:
            with transaction.atomic():
                action()
        except (AppError, IndexError, ObjectDoesNotExist):
            continue
        changed = {place for place in differing(before, answers()) if place[1] == "production"}
        if possible and refusal is None:
            assert not changed, action
            allowed += 1
        elif refusal is not None:
            keeps_name = "code asks for a flag by its name" in refusal.message
            assert keeps_name or (refusal.gated.project, refusal.gated.environment) in changed, action
            refused += 1
    assert allowed
    assert refused


@pytest.mark.parametrize("seed", first_every_day(range(6)))
def test_the_derived_request_does_what_the_refused_action_would_have_done(flags: None, seed: int) -> None:
    reviewer = Caller(user=make_user("reviewer", root_role=1))
    changes = RandomChanges(seed + 100)
    applied = 0
    for _ in range(examples(120)):
        _, action = changes.random.choice(changes.actions)
        guard()
        choices = changes.random.getstate()
        refusal, _possible = undone(action)
        if refusal is None or refusal.gated.changes is None:
            continue
        gated = refusal.gated
        before = answers()[gated.project, gated.environment]
        ProjectEnvironment.objects.update(required_approvals=None)
        with transaction.atomic():
            changes.random.setstate(choices)
            action()
            wanted = answers()[gated.project, gated.environment]
            transaction.set_rollback(True)
        ProjectEnvironment.objects.filter(project=gated.project, environment="production").update(
            required_approvals=0
        )
        request = add_changes(gated.project, gated.environment, gated.changes, caller=AUTHOR)
        for state in ("In review", "Applied"):
            set_state(gated.project, request.pk, state, caller=AUTHOR if state == "In review" else reviewer)
        made = answers()[gated.project, gated.environment]
        assert any(find_differing(before, made)), action
        assert evaluated(made) == evaluated(wanted), action
        applied += 1
    assert applied


def evaluated(read: Definitions) -> Any:
    """What the flags that are on give, whatever ids their strategies have."""
    return {
        flag["name"]: {
            **{key: flag[key] for key in ("variants", "dependencies", "impression_data")},
            "strategies": [
                {key: value for key, value in strategy.items() if key not in ("id", "title", "sortOrder")}
                for strategy in flag["strategies"]
                if not strategy["disabled"]
            ],
        }
        for flag in read.flags
        if flag["enabled"]
    }


def test_only_the_own_rights_of_a_caller_skip_requests() -> None:
    """Approved changes are made with all rights, which skip no request of another environment."""
    for rights, may_skip in ((NOTHING, False), (EVERYTHING, True)):
        caller = Caller(rights=rights).asking(skips_requests=True)
        for acting in (caller, caller.with_all_rights(), caller.with_all_rights().asking(postpones=True)):
            assert (find_skipping(acting, "shop", "production") is not None) == may_skip
    assert find_skipping(Caller(rights=EVERYTHING), "shop", "production") is None
