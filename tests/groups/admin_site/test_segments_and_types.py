"""Changes to segments, context fields, strategy types and tag types on the admin site."""

import json

import pytest
from django.contrib import admin

from projects.models import ContextField, FlagTag, Segment, StrategySegment, StrategyType, TagType
from projects.revision import read_revisions
from tests.support.admin_forms import errors_of, refusals, saved, send, site
from tests.support.flags import add_strategy, make_flag
from tests.support.records import events

__all__ = ["site"]

CONSTRAINT = {"contextName": "country", "operator": "IN", "values": ["DE"]}


def test_a_segment_is_created_changed_and_deleted(site):
    saved(send(site, "/admin/projects/segment/add/", name="eu", constraints=json.dumps([CONSTRAINT])))
    eu = Segment.objects.get()
    assert (eu.constraints, eu.created_by) == ([CONSTRAINT], "admin")
    strategy = add_strategy(make_flag("live", "default"))
    StrategySegment.objects.create(strategy=strategy, segment=eu)
    before = read_revisions(["default"])["default"]
    changed = [CONSTRAINT | {"values": ["DE", "FR"]}]
    saved(send(site, f"/admin/projects/segment/{eu.pk}/change/", constraints=json.dumps(changed)))
    assert read_revisions(["default"])["default"] > before
    response = site.post(f"/admin/projects/segment/{eu.pk}/delete/", {"post": "yes"})
    assert "in use on 1 flag: live" in response.text
    StrategySegment.objects.all().delete()
    site.post(f"/admin/projects/segment/{eu.pk}/delete/", {"post": "yes"})
    assert not Segment.objects.exists()
    kinds = ["segment-created", "segment-updated", "segment-deleted"]
    assert [event.type for event in events(*kinds)] == kinds


@pytest.mark.parametrize(
    ("constraints", "message"),
    [
        ([{"contextName": "a", "operator": "NUM_EQ", "value": "x"}], "constraints[0].value"),
        ([{"contextName": "a"}], "constraints[0].operator"),
        ({"contextName": "a"}, "constraints"),
    ],
)
def test_an_invalid_segment_is_refused(site, constraints, message):
    response = send(site, "/admin/projects/segment/add/", name="eu", constraints=json.dumps(constraints))
    assert any(message in text for text in errors_of(response))
    assert not Segment.objects.exists()


def test_a_context_field_is_created_changed_and_deleted(site):
    url = "/admin/projects/contextfield/"
    saved(send(site, f"{url}add/", name="tier", legal_values='[{"value": "a"}]'))
    saved(send(site, f"{url}tier/change/", stickiness="on"))
    tier = ContextField.objects.get(name="tier")
    assert (tier.stickiness, tier.legal_values) == (True, [{"value": "a"}])
    response = send(site, f"{url}tier/change/", legal_values='[{"value": "a"}, {"value": "a"}]')
    assert "legalValues[1].value" in errors_of(response)[0]
    site.post(f"{url}tier/delete/", {"post": "yes"})
    assert not ContextField.objects.filter(name="tier").exists()
    assert len(events("context-field-created", "context-field-updated", "context-field-deleted")) == 3


def test_a_strategy_type_is_changed_unless_it_is_built_in(site):
    url = "/admin/projects/strategytype/"
    saved(send(site, f"{url}add/", name="hostGroup", parameters='[{"name": "p", "type": "string"}]'))
    saved(send(site, f"{url}hostGroup/change/", title="Host group"))
    assert StrategyType.objects.get(name="hostGroup").title == "Host group"
    response = send(site, f"{url}hostGroup/change/", parameters='[{"name": "p"}]')
    assert "parameters[0].type" in errors_of(response)[0]
    response = send(site, f"{url}flexibleRollout/change/", title="Mine")
    assert "is built in" in refusals(response)[0]
    response = site.post(f"{url}flexibleRollout/delete/", {"post": "yes"})
    assert "is built in" in response.text
    site.post(f"{url}hostGroup/delete/", {"post": "yes"})
    assert not StrategyType.objects.filter(name="hostGroup").exists()


def test_a_tag_type_in_use_is_not_deleted(site):
    url = "/admin/projects/tagtype/"
    saved(send(site, f"{url}add/", name="team", description="who", color="#00AAFF"))
    response = send(site, f"{url}team/change/", color="red")
    assert "not a color" in errors_of(response)[0]
    FlagTag.objects.create(flag=make_flag("live", "default"), tag_type_id="team", value="web")
    response = site.post(f"{url}team/delete/", {"post": "yes"})
    assert "in use on 1 flag: live" in response.text
    assert TagType.objects.filter(name="team").exists()


@pytest.mark.parametrize("path", ["segment/{segment}", "strategytype/hostGroup", "tagtype/team"])
def test_the_page_before_a_deletion_deletes_nothing(site, monkeypatch, path):
    """Deleting to see whether it works would take the locks of a deletion for everybody who only looks."""
    for model in (Segment, StrategyType, TagType):
        monkeypatch.setattr(admin.site._registry[model], "remove", never)
    eu = Segment.objects.create(name="eu", constraints=[CONSTRAINT])
    StrategyType.objects.create(name="hostGroup")
    TagType.objects.create(name="team")
    url = f"/admin/projects/{path.format(segment=eu.pk)}/delete/"
    assert "Cannot delete" not in site.get(url).text

    flag = make_flag("live", "default")
    StrategySegment.objects.create(strategy=add_strategy(flag, name="hostGroup"), segment=eu)
    FlagTag.objects.create(flag=flag, tag_type_id="team", value="web")
    shown = site.get(url).text
    assert "Cannot delete" in shown
    assert "1 flag: live" in shown


def never(*args, **kwargs):
    raise AssertionError("a page that is only shown deletes nothing")
