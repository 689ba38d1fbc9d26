"""Old usage data is deleted, and nothing else."""

from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import call_command
from django.utils import timezone

from flagadmin.core.hook import later
from flagadmin.core.server import background_tasks
from projects.applications.cleanup import clean_usage
from projects.models import Application, ApplicationInstance, FlagUsage, ProjectApplication, UsageHour
from tests.support.flags import make_flag
from tests.support.sdk import Sdk

pytestmark = pytest.mark.django_db


@pytest.fixture
def usage(sdk: Sdk) -> None:
    make_flag("checkout", "default")
    sdk.register("web", "w-1", sdkVersion="unleash-go:1.0.0")
    sdk.count("web", ["checkout"], "w-1")
    sdk.count("web", ["checkout"], "w-1", at=timezone.now() - timedelta(hours=47))


def test_hourly_counts_go_after_two_days_and_nothing_younger(usage: None) -> None:
    done = clean_usage()
    assert (done.hours, done.instances, done.applications) == (0, 0, 0)
    assert UsageHour.objects.count() == 2

    assert clean_usage(now=timezone.now() + timedelta(hours=3)).hours == 1
    assert UsageHour.objects.count() == 1
    assert FlagUsage.objects.count() == 1


def test_many_hourly_counts_go_in_parts(usage: None, monkeypatch) -> None:
    monkeypatch.setattr("projects.applications.cleanup.ROWS_PER_TRANSACTION", 1)
    assert clean_usage(now=timezone.now() + timedelta(days=3)).hours == 2


def test_an_instance_is_remembered_longer_than_it_is_listed(usage: None) -> None:
    ApplicationInstance.objects.update(seen_at=timezone.now() - timedelta(days=29))
    assert clean_usage().instances == 0
    ApplicationInstance.objects.update(seen_at=timezone.now() - timedelta(days=31))
    assert clean_usage().instances == 1


def test_an_application_stays_as_long_as_it_has_used_a_flag(usage: None) -> None:
    month = timezone.now() + timedelta(days=31)
    assert clean_usage(now=month).applications == 0
    FlagUsage.objects.all().delete()
    assert clean_usage(now=month).applications == 1
    assert not Application.objects.exists()


def test_an_application_that_only_registered_goes_with_its_instances(sdk: Sdk) -> None:
    sdk.register("passer-by")
    done = clean_usage(now=timezone.now() + timedelta(days=31))
    assert (done.instances, done.applications) == (1, 1)


def test_what_a_race_left_behind_is_swept(usage: None) -> None:
    application = Application.objects.get()
    FlagUsage.objects.create(
        application_id=application.pk, flag_id=987654, environment="development", last_used_at=timezone.now()
    )
    FlagUsage.objects.create(
        application_id=987654, flag_id=987654, environment="development", last_used_at=timezone.now()
    )
    ApplicationInstance.objects.create(
        application_id=987654,
        environment="development",
        instance_id="x",
        first_seen_at=timezone.now(),
        seen_at=timezone.now(),
    )
    clean_usage()
    assert FlagUsage.objects.count() == 1
    assert ApplicationInstance.objects.count() == 1


def test_lines_are_made_anew_and_the_command_says_what_it_did(usage: None) -> None:
    soon = timezone.now() - timedelta(days=6, hours=12)
    ProjectApplication.objects.update(oldest_seen_at=soon)
    assert clean_usage().lines == 1
    assert ProjectApplication.objects.get().oldest_seen_at > soon

    out = StringIO()
    call_command("cleanup_usage", stdout=out)
    assert out.getvalue().startswith("Deleted 0 hourly counts, 0 instances and 0 applications;")


def test_serving_does_it_from_time_to_time() -> None:
    assert any(
        periodic.task is later("projects.applications.cleanup:clean_usage")
        for periodic in background_tasks._periodic
    )
