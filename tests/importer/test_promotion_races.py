"""Promotions concurrent with each other and with changes of what they copy, on real connections."""

from typing import Any

import pytest

from groups.access import Caller
from importer.apply.execute import promote_flags
from importer.plan.import_plan import read_flags
from importer.promotion import Promotion
from importer.runs import access_run, confirm_run, create_promotion
from projects.flags.archive.actions import archive_flags
from projects.models import Flag, Project
from projects.strategies.actions import add_strategy, edit_strategy
from tests.support.flags import make_flag
from tests.support.racing import BEFORE_COMMIT, BEFORE_LOCK, race, together

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.exhaustive]
WHO = Caller.system()
CART = Promotion("shop", "development", "production", ("cart",))


def rollout(percentage: str) -> dict[str, Any]:
    return {"name": "flexibleRollout", "parameters": {"rollout": percentage}}


@pytest.fixture
def strategy(shop: Project) -> str:
    """The id of the strategy that ``cart`` has in development."""
    make_flag("cart")
    return add_strategy("shop", "cart", "development", rollout("10"), caller=WHO)["id"]


def percentages(environment: str) -> list[str]:
    document = read_flags(["cart"], project="shop", environment=environment)["cart"].document
    return [each["parameters"]["rollout"] for each in (document or {})["strategies"]]


def test_two_promotions_at_once_write_once(strategy: str) -> None:
    runs = together(*[lambda: promote_flags(CART, caller=WHO)] * 2)
    assert sorted(run.counts["change"] for run in runs) == [0, 1]
    assert percentages("production") == ["10"]


def test_what_is_copied_is_read_once_nobody_can_change_it(strategy: str) -> None:
    def edit() -> Any:
        return edit_strategy("shop", "cart", "development", strategy, lambda _: rollout("50"), caller=WHO)

    race(lambda: promote_flags(CART, caller=WHO), edit, stop=BEFORE_LOCK)
    assert percentages("production") == percentages("development") == ["50"]


def test_a_change_waits_for_the_promotion(strategy: str) -> None:
    def edit() -> Any:
        return edit_strategy("shop", "cart", "development", strategy, lambda _: rollout("50"), caller=WHO)

    race(lambda: promote_flags(CART, caller=WHO), edit, stop=BEFORE_COMMIT)
    assert (percentages("production"), percentages("development")) == (["10"], ["50"])


def test_a_confirmed_preview_is_promoted_once(strategy: str) -> None:
    run = create_promotion(CART, caller=WHO)

    def confirm() -> Any:
        return confirm_run(access_run(WHO, run.pk), caller=WHO, fingerprint=run.fingerprint)

    results = together(confirm, confirm)
    assert sum(isinstance(result, Exception) for result in results) == 1
    assert percentages("production") == ["10"]


def test_a_flag_archived_meanwhile_is_left_alone(strategy: str) -> None:
    def archive() -> Any:
        return archive_flags("shop", ["cart"], caller=WHO)

    promoted, _ = race(lambda: promote_flags(CART, caller=WHO), archive, stop=BEFORE_LOCK)
    assert promoted.counts["skip"] == 1
    assert Flag.objects.get().is_archived
    assert percentages("production") == []
