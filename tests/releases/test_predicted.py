"""What is predicted of a request is what applying it leaves, for random changes with every action there is."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import transaction
from django.utils import timezone

from flagadmin.core.errors import AppError
from groups.access import Caller
from projects.definitions import read_definitions
from releases.changes import KINDS, Kind
from releases.derive import find_differing
from releases.models import ChangeRequest
from releases.requests.impact import measure_impact, predict_request
from releases.requests.propose import add_changes
from releases.requests.states import set_state
from tests.support.cast import make_project, make_user
from tests.support.demo import made_once
from tests.support.examples import examples
from tests.support.for_each import for_each
from tests.support.random_proposals import Proposals, flags_of, make_flags

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("flags")]


@pytest.fixture(scope="module")
def flags(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    def make() -> None:
        make_project("shop")
        make_flags()

    with made_once(make, django_db_blocker):
        yield


@for_each("action", KINDS)
def test_what_is_predicted_is_what_applying_leaves(action: str) -> None:
    check_predictions(action, range(1))


@pytest.mark.exhaustive
@pytest.mark.parametrize("action", KINDS)
def test_so_it_is_for_many_requests(action: str) -> None:
    check_predictions(action, range(1, examples(20)))


def check_predictions(action: str, rounds: range) -> None:
    """Of these random requests with the action among others, or of more until one can be applied."""
    proposals, applied = Proposals(sorted(KINDS).index(action)), 0
    author, admin = Caller.system(), Caller(user=make_user("rita", root_role=1))
    for number in range(60):
        if number >= rounds.stop and applied:
            break
        others = proposals.random.choices(list(KINDS), k=proposals.random.randrange(4))
        with transaction.atomic():
            try:
                proposed = [proposals.propose(each) for each in (action, *others)]
                if number >= rounds.start:
                    request = add_changes("shop", "production", proposed, caller=author)
                    check_prediction(request, author, admin)
                    applied += 1
            except (AppError, IndexError):
                pass
            transaction.set_rollback(True)
    assert applied


def check_prediction(request: ChangeRequest, author: Caller, admin: Caller) -> None:
    stored, predicted = predict_request(request)
    before = read_definitions(["shop"], "production")
    changed = measure_impact(request, now=timezone.now()).document["changed"]
    for state, caller in (("In review", author), ("Applied", admin)):
        set_state("shop", request.pk, state, caller=caller)
    after = read_definitions(["shop"], "production")
    compared = flags_of(stored).keys()
    left, untouched = flags_of(after), {k: v for k, v in flags_of(before).items() if k not in compared}
    assert flags_of(predicted) == {name: left[name] for name in compared & left.keys()}
    assert untouched.items() <= left.items()
    by_itself = any(
        type(KINDS[change.action]).draft_review is not Kind.draft_review for change in request.changes.all()
    )
    assert by_itself or not changed or any(find_differing(before, after))
