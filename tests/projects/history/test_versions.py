"""Versions of what decides answers: whoever writes it leaves them, and a transaction is one moment of theirs."""

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from io import StringIO
from typing import Any

import pgtrigger
import pytest
from django.core.management import CommandError, call_command
from django.db import connection, models
from django.test import Client
from django.utils import timezone

from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.errors import Conflict
from groups.access import Caller
from importer.apply.execute import import_body
from importer.body.schemas import read_body
from playground.comparison.versions import Version as Compared
from playground.comparison.versions import find_version_changes
from projects.flags.actions import NewFlag, create_flag
from projects.flags.archive.actions import archive_flags, delete_flags
from projects.flags.environments.actions import disable_flag, enable_flag, set_variants
from projects.history.definitions_at import fill_past, flags_then, read_since, read_version
from projects.models import (
    VERSIONS,
    Flag,
    FlagEnvironment,
    Project,
    Segment,
    Strategy,
    VersionsSince,
)
from projects.models.versions import (
    BEGINNING,
    NEVER,
    FlagEnvironmentVersion,
    FlagVersion,
    SegmentVersion,
    Version,
)
from projects.reverts.actions import revert_change, revert_flag
from projects.strategies.fields import COLUMNS
from tests.projects.history.checked import at, check_versions, forget_versions
from tests.support.admin_forms import send, site
from tests.support.flags import make_flag
from tests.support.for_each import for_each
from tests.support.import_bodies import body, strategy
from tests.support.moments import set_moment

__all__ = ["site"]
pytestmark = pytest.mark.django_db
WHO = Caller.system()
NOT_KEPT = {"created_at", "created_by", "created_by_id", "share"}
"""Columns that decide no answer, besides those of settings of projects, environments and context fields."""


@pytest.mark.parametrize(
    "source", [Flag, FlagEnvironment, Strategy, Segment], ids=lambda model: model.__name__
)
def test_a_new_column_is_kept_unless_it_is_known_to_decide_nothing(source: type[models.Model]) -> None:
    kept = {field.column for field in VERSIONS[source]._meta.concrete_fields}
    columns = {field.column for field in source._meta.concrete_fields}
    assert columns - NOT_KEPT <= kept
    assert kept - columns == {"valid_from", "valid_to"}


def test_strategies_are_kept_with_all_their_fields() -> None:
    assert {field.column for field in VERSIONS[Strategy]._meta.concrete_fields} >= set(COLUMNS)


@pytest.mark.parametrize("pair", VERSIONS.items(), ids=lambda pair: pair[0].__name__)
def test_versions_hold_every_value_of_the_column(pair: tuple[type[models.Model], type[Version]]) -> None:
    def types(model: type[models.Model]) -> dict[str, str]:
        listed = {field.column: field.rel_db_type(connection) for field in model._meta.concrete_fields}
        return {
            name: str("text" if (kind or "").startswith("varchar") else kind) for name, kind in listed.items()
        }

    source, versions = map(types, pair)
    assert {name: source[name] for name in versions if name in source} == {
        name: kind for name, kind in versions.items() if name in source
    }


# Writers -----------------------------------------------------------------------------------------------------------


def by_sql(statement: str, *parameters: Any) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)


def over_the_api(api: Any, site: Client) -> None:
    url = "/api/admin/projects/shop/features/cart/environments/production"
    assert api["admin"].post(f"{url}/strategies", {"name": "default"}).status_code == 200
    assert api["admin"].post(f"{url}/on").status_code == 200


def by_import(api: Any, site: Client) -> None:
    names = [f"imported-{number}" for number in range(60)]  # by COPY
    import_body(read_body(body("cart", *names)), caller=WHO)


def on_the_admin_site(api: Any, site: Client) -> None:
    page = f"/admin/projects/flag/{Flag.objects.get(name='cart').pk}/change/"
    assert send(site, page, description="changed here").status_code == 302


def by_plain_sql(api: Any, site: Client) -> None:
    by_sql("UPDATE projects_flag SET stale = true WHERE name = 'cart'")


@for_each("write", [over_the_api, by_import, on_the_admin_site, by_plain_sql])
def test_every_writer_leaves_versions(
    shop: Project, api: Any, site: Client, write: Callable[[Any, Client], None]
) -> None:
    create_flag("shop", NewFlag(name="cart"), caller=WHO)
    before = count_versions()
    set_moment("")
    write(api, site)
    assert count_versions() > before
    check_versions()


def count_versions() -> int:
    return sum(versions._default_manager.count() for versions in VERSIONS.values())


def test_versions_have_the_time_of_the_event(shop: Project) -> None:
    create_flag("shop", NewFlag(name="cart"), caller=WHO)
    enable_flag("shop", "cart", "production", caller=WHO)
    variants = [{"name": "red", "weightType": "variable", "weight": 1}]
    set_variants("shop", "cart", "production", variants, caller=WHO)
    events = AuditEvent.objects.filter(feature="cart").order_by("id")
    times = list(dict.fromkeys(events.values_list("created_at", flat=True)))
    there = versions_of(FlagEnvironmentVersion, environment_id="production")
    assert [(version.enabled, bool(version.variants)) for version in there] == [
        (False, False), (True, False), (True, True)
    ]  # fmt: skip
    assert [version.valid_from for version in there] == times
    assert [version.valid_to for version in there] == [*times[1:], NEVER]


def versions_of(kind: type[Version], **where: Any) -> list[Any]:
    return list(kind._default_manager.filter(**where).order_by("valid_from"))


# Transactions ------------------------------------------------------------------------------------------------------


@pytest.fixture
def clock() -> Iterator[Callable[[datetime], None]]:
    """Sets the time of the changes that follow, as those of a transaction of their own have one."""
    yield lambda moment: set_moment(moment.isoformat())
    set_moment("")


def test_of_several_changes_in_a_transaction_the_last_state_stays(shop: Project, clock: Any) -> None:
    start = timezone.now()
    clock(start)
    flag = make_flag("cart")
    clock(start + timedelta(seconds=1))
    for description in ("one", "two", "three"):
        Flag.objects.filter(pk=flag.pk).update(description=description)
    short_lived = make_flag("short-lived")
    FlagEnvironment.objects.filter(flag=short_lived).delete()
    short_lived.delete()
    kept = versions_of(FlagVersion, id=flag.pk)
    assert [version.description for version in kept] == [None, "three"]
    assert not versions_of(FlagVersion, id=short_lived.pk)
    check_versions()


def test_what_changes_nothing_leaves_no_version(shop: Project, clock: Any) -> None:
    start = timezone.now()
    clock(start)
    flag = make_flag("cart", description="same")
    clock(start + timedelta(seconds=1))
    by_sql("UPDATE projects_flag SET description = 'same', created_by_id = NULL")
    by_sql("DELETE FROM projects_flag WHERE name = 'nowhere'")
    [version] = versions_of(FlagVersion, id=flag.pk)
    assert (version.valid_from, version.valid_to) == (start, NEVER)


def test_a_clock_that_was_set_back_makes_no_version_overlap(shop: Project, clock: Any) -> None:
    start, hour, microsecond = timezone.now(), timedelta(hours=1), timedelta(microseconds=1)
    clock(start)
    pk = Segment.objects.create(name="one").pk
    clock(start - hour)
    Segment.objects.update(name="two")
    clock(start + hour)
    Segment.objects.filter(pk=pk).delete()
    clock(start - hour)
    Segment.objects.create(pk=pk, name="three")
    check_versions()
    assert [
        (version.name, version.valid_from - start, version.valid_to)
        for version in versions_of(SegmentVersion, id=pk)
    ] == [
        ("one", timedelta(), start + microsecond),
        ("two", microsecond, start + hour),
        ("three", hour, NEVER),
    ]


# Reading -----------------------------------------------------------------------------------------------------------


def test_what_versions_do_not_reach_is_unknown(shop: Project) -> None:
    flag = create_flag("shop", NewFlag(name="cart"), caller=WHO)
    enable_flag("shop", "cart", "production", caller=WHO)
    moment = timezone.now()
    event = AuditEvent.objects.latest("pk")
    disable_flag("shop", "cart", "production", caller=WHO)
    VersionsSince.objects.create(since=timezone.now(), kept_since=timezone.now())
    for read in (
        lambda: at(moment, "shop", "production"),
        lambda: flags_then(["cart"], ["shop"], "production", moment),
        lambda: read_version(flag, moment),
        lambda: revert_flag("shop", "cart", moment, caller=WHO),
        lambda: revert_change(event.pk, caller=WHO),
    ):
        with pytest.raises(Conflict, match="unknown: their versions are stored from"):
            read()
    assert find_version_changes(flag, [Compared.of_events([event.created_at])]) == {}
    VersionsSince.objects.update(since=BEGINNING)
    assert revert_flag("shop", "cart", moment, caller=WHO)


def test_the_past_before_versions_is_filled_in_and_verified(shop: Project) -> None:
    first = [strategy("cart", parameters={"rollout": "10"}), strategy("cart", parameters={"rollout": "20"})]
    for strategies in (first, [strategy("cart", parameters={"rollout": "30"})]):
        import_body(read_body(body("cart", featureStrategies=strategies)), caller=WHO)
    create_flag("shop", NewFlag(name="gone"), caller=WHO)
    moment = timezone.now()
    archive_flags("shop", ["gone"], caller=WHO)
    delete_flags("shop", ["gone"], caller=WHO)
    with pgtrigger.ignore("audit.AuditEvent:append_only"):  # as versions before 1.2.0 recorded them
        AuditEvent.objects.update(earlier=None)
    forget_versions()
    fill_past()
    output = StringIO()
    call_command("backfill_versions", verify=50, stdout=output)
    assert output.getvalue().splitlines()[-2:] == [
        "Versions are complete.",
        "50 moments equal the audit log.",
    ]
    assert read_since() == BEGINNING
    assert [flag["name"] for flag in at(moment, "shop", "development").flags] == ["cart", "gone"]
    check_versions()
    call_command("backfill_versions", stdout=output)
    FlagVersion.objects.update(stale=True)
    with pytest.raises(CommandError, match=r"^\d+ of 50 moments differ from the audit log: .* in .* at "):
        call_command("backfill_versions", verify=50, stdout=output)


def test_changes_by_plain_sql_are_of_the_past_too(shop: Project) -> None:
    create_flag("shop", NewFlag(name="cart"), caller=WHO)
    moment = timezone.now()
    set_moment("")
    by_sql("UPDATE projects_flag SET stale = true")
    assert [flag["stale"] for flag in at(moment, "shop", "production").flags] == [False]
    assert [flag["stale"] for flag in at(timezone.now(), "shop", "production").flags] == [True]
