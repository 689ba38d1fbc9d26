"""FLAGADMIN_VERSIONS_DAYS: what is no longer kept is unknown, and nothing that is needed is deleted."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.errors import Conflict
from projects.flags.environments.actions import disable_flag, enable_flag
from projects.history.definitions_at import fill_past, flags_then, read_since
from projects.history.retention import drop_versions
from projects.models import VERSIONS, Flag
from projects.models.versions import BEGINNING, NEVER, FlagEnvironmentVersion, VersionsSince
from releases.models import ChangeRequest, ReleasePlan
from tests.support.change_requests import propose, turn
from tests.support.plans import WHO, move_all, started
from tests.support.plans import cart as cart_with_plan
from tests.support.playground import live_flag

pytestmark = pytest.mark.django_db
NOW = timezone.now()


def days_ago(days: float) -> Any:
    return timezone.now() - timedelta(days=days)


def past() -> Any:
    return FlagEnvironmentVersion.objects.filter(valid_to__lt=NEVER)


@pytest.fixture
def cart(shop: Any) -> Flag:
    """It was turned off and on 20 days ago."""
    flag = live_flag("cart", strategies=[{"name": "default"}])
    move_all(days_ago(30))
    disable_flag("shop", "cart", "production", caller=WHO)
    FlagEnvironmentVersion.objects.filter(valid_to__lt=NEVER).update(valid_to=days_ago(20))
    FlagEnvironmentVersion.objects.filter(valid_to=NEVER).update(valid_from=days_ago(20))
    enable_flag("shop", "cart", "production", caller=WHO)
    return flag


def read(days: float) -> bool:
    [flag] = flags_then(["cart"], ["shop"], "production", days_ago(days)).flags
    return flag["enabled"]


def test_everything_is_kept_without_the_setting(cart: Flag) -> None:
    kept = past().count()
    assert drop_versions() == 0
    assert (past().count(), VersionsSince.objects.count()) == (kept, 0)
    assert (read(25), read(10)) == (True, False)


def test_older_moments_are_unknown_and_then_deleted(cart: Flag, settings: Any) -> None:
    settings.VERSIONS_DAYS = 15
    events = AuditEvent.objects.count()
    assert drop_versions() == 0  # who has just read the limit still finds them
    with pytest.raises(Conflict, match=r"deleted after 15 days \(FLAGADMIN_VERSIONS_DAYS\)"):
        read(25)
    assert read(10) is False
    assert past().filter(valid_to__lt=days_ago(15)).exists()
    assert drop_versions() > 0
    assert not any(
        versions._default_manager.filter(valid_to__lt=days_ago(15)).exists() for versions in VERSIONS.values()
    )
    assert read(10) is False
    assert AuditEvent.objects.count() == events


def test_it_is_deleted_in_batches(cart: Flag, settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.VERSIONS_DAYS = 15
    copies = [
        FlagEnvironmentVersion(
            id=-number, valid_from=days_ago(40), valid_to=days_ago(30), flag_id=cart.pk,
            environment_id="production", enabled=True, variants=[],
        )
        for number in range(1, 8)
    ]  # fmt: skip
    FlagEnvironmentVersion.objects.bulk_create(copies)
    monkeypatch.setattr("projects.history.retention.BATCH", 3)
    drop_versions()
    assert drop_versions() >= 7


def test_what_open_requests_and_unfinished_plans_need_stays(api: Any, cart: Flag, settings: Any) -> None:
    settings.VERSIONS_DAYS = 5
    request = propose(api["owner"], turn(False))
    ChangeRequest.objects.update(created_at=days_ago(22))
    drop_versions()
    assert read_since() == ChangeRequest.objects.get().created_at
    assert read(21) is True
    ChangeRequest.objects.filter(pk=request["id"]).update(state="Cancelled")
    drop_versions()
    assert read_since() > days_ago(6)


def test_an_unfinished_plan_is_needed(shop: Any, settings: Any) -> None:
    settings.VERSIONS_DAYS = 5
    cart_with_plan(5)
    started()
    ReleasePlan.objects.update(created_at=days_ago(9))
    drop_versions()
    assert read_since() == ReleasePlan.objects.get().created_at


def test_the_past_before_an_upgrade_comes_first(cart: Flag, settings: Any) -> None:
    settings.VERSIONS_DAYS = 15
    VersionsSince.objects.create(since=days_ago(20), kept_since=days_ago(10))
    drop_versions()
    assert read_since() < days_ago(19)  # it is not stored yet
    VersionsSince.objects.update(since=BEGINNING)
    drop_versions()
    assert read_since() == BEGINNING  # versions of triggers are younger
    VersionsSince.objects.update(kept_since=days_ago(16))
    drop_versions()
    limit = read_since()
    assert limit > days_ago(16)
    fill_past()
    assert read_since() == limit  # what was deleted is not made again
