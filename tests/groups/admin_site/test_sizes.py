"""No form of the admin site grows with the data, and what does not fit into it stays as it is."""

import pytest

from projects.models import FlagEnvironment, FlagTag, Segment, Strategy
from tests.support.admin_forms import saved, send, site
from tests.support.flags import add_strategy, make_flag

__all__ = ["site"]

MAX_COUNT = 300_000
LONG = [
    {"contextName": "country", "operator": "IN", "values": [f"{index:03}{'v' * 97}" for index in range(250)]}
    for _ in range(30)
]
# Those of a segment are limited in all.
LONG_SEGMENT = [{**condition, "values": condition["values"][:33]} for condition in LONG]


@pytest.fixture
def full(shop):
    flag = make_flag("full")
    for order in range(3):
        add_strategy(flag, "production", constraints=LONG, sort_order=order)
    FlagTag.objects.bulk_create(
        FlagTag(flag=flag, tag_type_id="simple", value=f"tag-{index}") for index in range(500)
    )
    FlagEnvironment.objects.filter(flag=flag).update(variants=[{"name": "v", "payload": "p" * 60_000}])
    return flag


def content(answer):
    assert answer.status_code == 200
    assert len(answer.content) < MAX_COUNT
    return answer.content.decode()


def test_rows_that_do_not_fit_are_counted_and_edited_one_by_one(site, full):
    address = f"/admin/projects/flag/{full.pk}/change/"
    shown = content(site.get(address))
    assert "<strong>3 strategies</strong>" in shown
    assert f'href="/admin/projects/strategy/?flag__id__exact={full.pk}"' in shown
    assert "<strong>500 tags</strong>" in shown
    assert f"/projects/shop/features/{full.name}/" in shown

    kept = list(Strategy.objects.order_by("pk").values())
    saved(send(site, address, description="at its limits"))
    full.refresh_from_db()
    assert full.description == "at its limits"
    assert list(Strategy.objects.order_by("pk").values()) == kept
    assert full.tags.count() == 500
    assert (
        content(site.get(f"/admin/projects/strategy/?flag__id__exact={full.pk}")).count("action-select") >= 3
    )


def test_a_long_value_is_summarized_and_survives(site, full):
    strategy = full.strategies.order_by("sort_order")[0]
    address = f"/admin/projects/strategy/{strategy.pk}/change/"
    assert "too long for this form" in content(site.get(address))

    saved(send(site, address, title="EU"))
    strategy.refresh_from_db()
    assert strategy.title == "EU"
    assert strategy.constraints == LONG


def test_a_long_value_of_a_segment_survives(site, shop):
    segment = Segment.objects.create(name="vip", constraints=LONG_SEGMENT)
    address = f"/admin/projects/segment/{segment.pk}/change/"
    content(site.get(address))

    saved(send(site, address, description="all of them"))
    segment.refresh_from_db()
    assert (segment.description, segment.constraints) == ("all of them", LONG_SEGMENT)


def test_short_values_have_their_fields(site, shop):
    flag = make_flag("short")
    add_strategy(flag, "production")
    shown = content(site.get(f"/admin/projects/flag/{flag.pk}/change/"))
    assert 'name="strategies-0-constraints"' in shown
    assert "left-out" not in shown
