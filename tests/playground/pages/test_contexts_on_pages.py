"""Contexts on the playground's pages: which fields come first, changing one on a trace, one for both sides."""

from typing import Any

import pytest

from playground.pages import views
from playground.pages.form import ContextForm
from projects.models import ContextField
from tests.support.playground import live_flag

ONLY_PRO = {"contextName": "plan", "operator": "IN", "values": ["pro"]}
IN_OSLO = {"contextName": "city", "operator": "IN", "values": ["Oslo"]}


@pytest.fixture
def flags(shop: Any) -> None:
    for name in ("plan", "city", "region"):
        ContextField.objects.create(name=name)
    live_flag("lounge", strategies=[{"name": "default", "constraints": [ONLY_PRO]}])
    live_flag("tram", strategies=[{"name": "default", "constraints": [IN_OSLO]}])


def first_fields(form: ContextForm) -> list[str]:
    return [field.name for field in form.fields]


def form_of(browse: Any, monkeypatch: Any, url: str, **query: str) -> ContextForm:
    """The first form that a page is made of; the page does not keep it."""
    made: list[ContextForm] = []
    make = views.make_form

    def note(*given: Any, **named: Any) -> ContextForm:
        made.append(make(*given, **named))
        return made[-1]

    monkeypatch.setattr(views, "make_form", note)
    assert browse("viewer").get(url, query).status_code == 200
    return made[0]


def test_fields_of_all_flags_or_of_the_one_that_is_looked_for(
    browse: Any, flags: None, monkeypatch: Any
) -> None:
    everything = form_of(browse, monkeypatch, "/playground/")
    assert {"plan", "city"} <= set(first_fields(everything))
    alone = form_of(browse, monkeypatch, "/playground/", q="lounge")
    assert "plan" in first_fields(alone)
    assert "city" not in first_fields(alone)


def test_a_trace_has_the_fields_to_change(browse: Any, flags: None) -> None:
    url = "/playground/flag/lounge/"
    off = browse("viewer").get(url, {"environment": "production", "context.plan": "free"}).text
    assert 'name="context.plan" value="free"' in off
    assert '<input type="hidden" name="environment" value="production">' in off
    on = browse("viewer").get(url, {"environment": "production", "context.plan": "pro"}).text
    assert '<span class="pill on">' in on


def test_a_context_without_a_side_is_for_both(browse: Any, flags: None) -> None:
    page = browse("viewer").get("/playground/compare/", {"context.plan": "pro"}).text
    for side in "ab":
        assert f'name="{side}.context.plan" value="pro"' in page
    own = browse("viewer").get("/playground/compare/", {"a.context.plan": "pro", "context.plan": "free"}).text
    assert 'name="a.context.plan" value="pro"' in own
    assert 'name="b.context.plan" value="pro"' not in own


def test_the_heading_counts_what_is_shown(browse: Any, flags: None) -> None:
    assert "1 of 2 flags" in browse("viewer").get("/playground/", {"q": "lounge"}).text
