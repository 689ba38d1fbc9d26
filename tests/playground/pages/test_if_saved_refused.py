"""What saving a form would refuse, "Who changes" beside it says instead of comparing; forms themselves refuse the same."""

from typing import Any

import pytest

from projects.models import Flag, Project, ProjectEnvironment, Segment, Strategy
from tests.support.cast import make_project
from tests.support.flags import add_strategy, depend, make_flag
from tests.support.for_each import for_each
from tests.support.page_text import page_text
from tests.support.playground import live_flag

FLAG = "/projects/shop/features/f/"


@pytest.fixture
def flag(shop: Any) -> Flag:
    return live_flag("f")


def both(browse: Any, url: str, form: dict[str, Any]) -> tuple[str, str]:
    """What the panel says, and the page without scripts."""
    beside = browse("admin").post(f"/if-saved{url}", form, headers={"HX-Request": "true"})
    page = browse("admin").post(f"/if-saved{url}", form)
    assert (beside.status_code, page.status_code) == (200, 200)
    return page_text(beside), page_text(page)


def is_refused(browse: Any, url: str, form: dict[str, Any], message: str) -> None:
    for text in both(browse, url, form):
        assert message in text
        assert "generated users" not in text


def test_a_parent_that_would_be_archived(browse: Any, flag: Flag) -> None:
    depend(live_flag("child"), flag)
    message = "f cannot be archived: child would lose what it depends on."
    is_refused(browse, "/projects/shop/features/archive", {"name": ["f"]}, message)
    assert message in page_text(
        browse("admin").post("/projects/shop/features/archive", {"name": ["f"], "known": ""})
    )
    for text in both(browse, "/projects/shop/features/archive", {"name": ["f"], "dependants": "yes"}):
        assert "generated users" in text


def bad_default() -> None:
    rows = ProjectEnvironment.objects.filter(project="shop", environment="production")
    rows.update(default_strategy={"name": "default", "segments": [404]})


@for_each("url", [f"{FLAG}switch", "/projects/shop/features/switch"])
def test_a_default_strategy_that_cannot_be_added(browse: Any, shop: Project, url: str) -> None:
    make_flag("f")
    form = {"environment": "production", "enabled": "on", "name": "f"}
    for text in both(browse, url, form):
        assert "generated users" in text
    bad_default()
    is_refused(browse, url, form, "segment 404 not found")
    add_strategy(Flag.objects.get(name="f"), "production")
    for text in both(browse, url, form):
        assert "generated users" in text


def fill(flag: Flag, *, disabled: bool) -> None:
    Strategy.objects.filter(flag=flag).delete()
    for place in range(30):
        add_strategy(flag, "production", disabled=disabled, sort_order=place)


@for_each("url", [f"{FLAG}switch", "/projects/shop/features/switch"])
def test_no_room_for_the_default_strategy(browse: Any, shop: Project, url: str) -> None:
    fill(make_flag("f"), disabled=True)
    form = {"environment": "production", "enabled": "on", "name": "f"}
    is_refused(browse, url, form, "f has 30 strategies in production, the maximum.")


def test_no_room_for_a_strategy(browse: Any, flag: Flag) -> None:
    fill(flag, disabled=False)
    url = f"{FLAG}strategies/new?environmentId=production"
    is_refused(
        browse, url, {"name": "default", "do": "save"}, "f has 30 strategies in production, the maximum."
    )


def test_an_order_of_unknown_strategies(browse: Any, flag: Flag) -> None:
    form = {"environment": "production", "order": "nosuch"}
    is_refused(browse, f"{FLAG}order", form, "f has no strategy nosuch in production")
    page = browse("admin").post(f"{FLAG}order", form, follow=True)
    assert "f has no strategy nosuch in production" in page_text(page)


def test_a_dependency_that_is_not_there(browse: Any, flag: Flag) -> None:
    form = {"do": "remove", "feature": "nosuch"}
    assert browse("admin").post(f"/if-saved{FLAG}parents", form).status_code == 404


def segment_form(segment: Segment, **members: str) -> dict[str, str]:
    return {"name": segment.name, "project": segment.project_id or "", "do": "save"} | members


def test_segments(browse: Any, flag: Flag) -> None:
    vip, _ = (Segment.objects.create(name=name, constraints=[]) for name in ("vip", "staff"))
    add_strategy(flag, "production", segments=(vip,), sort_order=5)
    make_project("docs")
    url = f"/segments/{vip.pk}/"
    for changes, message in (
        ({"name": "staff"}, "A segment named staff already exists."),
        ({"project": "docs"}, "the segment is used by strategies in other projects: shop"),
    ):
        form = segment_form(vip, **changes)
        panel, page = both(browse, url, form)
        assert "generated users" not in panel + page
        assert message in page
        assert message in page_text(browse("admin").post(url, form | {"confirmed": "yes"}))
