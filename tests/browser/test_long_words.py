"""Long ids, names and unbroken strings do not make any page wider than its window."""

import pytest
from playwright.sync_api import expect

from projects.models import Environment, Flag, FlagLink, ProjectEnvironment
from releases.models import ReleasePlan
from releases.models.plans import make_ulid
from releases.templates.actions import insert_milestones
from tests.browser.looks import Window
from tests.support.cast import make_group, make_project, make_user
from tests.support.flags import add_strategy, depend, make_flag, switch_on

pytestmark = pytest.mark.usefixtures("scenery")
ID, WORD, STEPS = "p" * 100, "w" * 6_000, ["Few", "Some", "m" * 200]


@pytest.fixture
def long_words(scenery):
    project = make_project(ID, name="n" * 200, description=WORD)
    flag = make_flag("f" * 100, project, description=WORD)
    parent = make_flag("g" * 100, project)
    constraint = {"contextName": "c" * 90, "operator": "IN", "values": ["v" * 100, "x" * 100]}
    add_strategy(flag, "production", title="t" * 1_000, constraints=[constraint])
    switch_on(flag, "production")
    depend(flag, parent)
    make_group("g" * 255)
    FlagLink.objects.create(flag=flag, url=f"https://example.com/{'u' * 500}", title="l" * 200)
    return f"/projects/{ID}/features/{flag.name}/"


def test_every_page_fits(visit, long_words):
    window, wide = Window(visit("admin", "/account/")), {}
    for address in (
        long_words,
        f"{long_words}switch?environment=production&enabled=off",
        f"/projects/{ID}/",
        f"/projects/{ID}/delete/",
        f"/projects/{ID}/features/archive?name={'f' * 100}",
        "/projects/",
        f"/playground/?project={ID}&context.userId={'i' * 300}",
        f"/playground/flag/{'f' * 100}/?project={ID}",
        f"/playground/?project={ID}&environment=production&environment=development",
        f"/projects/{ID}/environments/production/approvals",
        f"/flags/?project={ID}",
        f"/activity/?project={ID}&flag={'f' * 100}",
        "/",
    ):
        window.page.goto(address)
        wide[address.replace(ID, "ID").replace("f" * 100, "FLAG")[:80]] = window.too_wide()
    assert {address: found for address, found in wide.items() if found} == {}


def test_a_long_name_leaves_room_for_the_steps_of_a_plan_and_a_long_description_is_folded(visit, long_words):
    milestones = [{"id": make_ulid(), "name": name, "strategies": [], "transition": None} for name in STEPS]
    flag = Flag.objects.get(name="f" * 100)
    plan = ReleasePlan.objects.create(flag=flag, environment_id="production", name="Careful")
    insert_milestones({"plan": plan}, milestones)
    page = visit("admin", f"{long_words}plans/{plan.pk}/")
    stations = page.locator("ol.stations > li")
    assert [stations.nth(index).bounding_box()["width"] >= 160 for index in range(3)] == [True] * 3

    page.goto(long_words)
    folded = page.locator("details.description")
    expect(folded.locator("p")).to_be_hidden()

    folded.locator("summary").click()
    expect(folded.locator("p")).to_have_text(WORD)


def test_many_environments_leave_room_for_names(visit, long_words):
    for number in range(6):
        environment = Environment.objects.create(name=f"environment-number-{number}", type="test")
        ProjectEnvironment.objects.create(project_id=ID, environment=environment)
    page = visit("admin", f"/projects/{ID}/", width=1024)

    names = page.get_by_role("table").get_by_role("rowheader")
    assert all(names.nth(index).bounding_box()["width"] >= 160 for index in range(names.count()))
    assert page.evaluate("document.documentElement.scrollWidth") <= 1024


def test_a_name_that_changes_the_direction_leaves_its_neighbors_where_they_are(visit):
    make_user("olsen", name="Gro \u202eOlsen")
    page = visit("admin", "/access/people/")
    row = page.get_by_role("rowheader").filter(has_text="Gro")
    name, username = row.get_by_role("link").bounding_box(), row.locator("small").first.bounding_box()
    assert name["x"] + name["width"] <= username["x"]
