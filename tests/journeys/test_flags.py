"""A flag's life: created, explained, switched, edited, reverted, archived, promoted. And what is said before each."""

import pytest

from projects.models import Flag, Strategy
from tests.support.flags import is_on, make_flag
from tests.support.walks import read_text

pytestmark = pytest.mark.usefixtures("scenery")
REDESIGN = "/projects/checkout/features/checkout-redesign/"
DARK = "/projects/checkout/features/dark-theme/"
WHY = "/playground/flag/dark-theme/?environment=production&context.userId=42&context.plan=pro"


def strategy():
    return Strategy.objects.get(flag__name="checkout-redesign", environment="production")


def editor():
    return f"{REDESIGN}strategies/edit?environmentId=production&strategyId={strategy().pk}"


# Strategies -------------------------------------------------------------------------------------------------


def test_explain_edit_and_see_it_on(walk):
    page = walk("admin", WHY)
    assert "userId 42 is in bucket 53 and the rollout stops at 50 %" in page.text
    page.press("Edit strategy 1 of dark-theme")
    assert "On for 50 % of users, by userId, where plan is one of pro, enterprise." in page.text
    page.fill("Rollout percentage", "60")
    page.press("Save now")
    assert "Changed a strategy of dark-theme in production." in page.status_message
    assert page.page.select_one(".verdict .pill").get_text(strip=True) == "On"


def test_a_rollout_in_production_is_raised_in_three_presses(walk):
    page = walk("admin", REDESIGN)
    page.press("Roll out strategy 1 in production")
    page.fill("Rollout percentage", "60")
    page.press("Update preview")
    assert page.part("Changes").select_one("ins").get_text(strip=True) == "60 %"
    assert strategy().parameters["rollout"] == "10"
    page.press("Save now")
    assert "Changed a strategy of checkout-redesign in production." in page.status_message
    assert strategy().parameters["rollout"] == "60"
    assert page.presses == 3


def test_deleting_a_strategy_says_first_what_it_does(walk):
    page = walk("admin", editor())
    page.press("Delete strategy…")
    assert "This cannot be undone." in page.dialog
    page.press("Delete strategy")
    assert "Deleted a strategy of checkout-redesign in production." in page.status_message
    assert not Strategy.objects.filter(flag__name="checkout-redesign", environment="production").exists()


def test_a_strategy_is_copied_to_another_environment(walk):
    page = walk("admin", editor())
    page.press("Copy to development")
    assert page.value("Rollout percentage") == "10"
    page.press("Add now")
    assert "Added a strategy to checkout-redesign in development." in page.status_message


def test_a_page_of_its_own_says_who_changes_and_leads_back(walk):
    page = walk("admin", REDESIGN)
    page.press("Roll out strategy 1 in production")
    page.fill("Rollout percentage", "60")
    page.press("Details")
    assert "of 10,000 generated users change" in page.text
    page.press("Back to the form")
    assert page.value("Rollout percentage") == "60"
    assert strategy().parameters["rollout"] == "10"


# Switches ---------------------------------------------------------------------------------------------------


def test_a_flag_is_created_switched_on_archived_and_revived(walk):
    page = walk("admin", "/projects/checkout/")
    page.press("New flag")
    page.fill("Name", "tip-jar")
    page.press("Create flag")
    assert "Created flag tip-jar, switched off in every environment." in page.status_message
    page.press("tip-jar in production")
    assert "Turn on tip-jar in production" in page.heading
    assert "On for everyone." in page.text
    page.press("Turn on tip-jar in production")
    switches = {read_text(each): each["aria-checked"] for each in page.page.select("[role=switch]")}
    assert switches["tip-jar in production"] == "true"
    assert "On for everyone." in page.part("production").get_text(" ")

    page.press("Archive…")
    assert "No application has evaluated it." in page.text
    page.press("Archive flag tip-jar")
    assert "Archived flag tip-jar." in page.status_message
    page.press("Revive flag")
    assert "Revived flag tip-jar, switched off in every environment." in page.status_message


# Reverting --------------------------------------------------------------------------------------------------


def test_a_change_is_turned_back_in_three_clicks(walk):
    page, before = walk("admin", DARK), is_on("dark-theme")
    done = f"Turn {'off' if before else 'on'} dark-theme in production"
    page.press("dark-theme in production")
    page.press(done)
    assert is_on("dark-theme") != before
    page.open("/")
    page.presses = 0
    page.press("What happened", within="Main")
    change = next(each for each in page.page.select("article") if "dark-theme" in read_text(each))
    page.presses += 1
    page.open(next(link["href"] for link in change.select("a") if "Turn back" in link.get_text()))
    assert ("on → off", "off → on")[before] in read_text(page.part("dark-theme"))
    page.press("Revert")
    assert "Reverted: turned dark-theme" in page.status_message
    assert page.presses == 3
    assert is_on("dark-theme") == before


def test_a_saved_strategy_is_undone_in_one_click(walk):
    page = walk("admin", DARK)
    page.press("Roll out", within="development")
    page.fill("Title", "Night owls")
    page.press("Save now")
    assert "Night owls" in page.part("development").get_text()
    page.press("Undo")
    assert "Undone: " in page.status_message
    assert "Night owls" not in page.part("development").get_text()


# May it be archived? ----------------------------------------------------------------------------------------


def test_a_flags_page_says_whether_it_may_be_archived(walk):
    page = walk("admin", "/")
    page.press("Flags", within="Main")
    page.press("Projects")
    page.press("Legacy portal")
    page.press("portal-read-only")
    assert "portal-web" in page.part("Who uses it").get_text()
    assert "Needed by" not in page.part("Dependencies").get_text()
    assert "17 evaluations in 24 hours" in " ".join(page.part("production").get_text(" ").split())
    assert page.presses <= 4
    page.press("Archive…")
    assert "portal-read-only was evaluated by portal-web" in page.page.select_one(".note.warn").get_text()
    page.press("Cancel")
    assert page.heading == "portal-read-only"


def test_stale_flags_of_all_projects_are_archived(walk):
    for number, project in enumerate(("checkout", "legacy-portal", "default")):
        make_flag(f"zz-stale-{number}", project, stale=True)
    page = walk("admin", "/")
    page.press("projects can go")
    for number in range(3):
        page.tick(f"Select zz-stale-{number}")
    page.press("Archive selected")
    page.press("Archive 3 flags")
    assert "Archived" in page.status_message
    assert Flag.objects.archived().filter(name__startswith="zz-stale").count() == 3


# Environments -----------------------------------------------------------------------------------------------

NAMES = ("first-flag", "second-flag", "third-flag")


@pytest.fixture
def promotable(scenery):
    for name in NAMES:
        make_flag(name, "checkout", enabled=True, strategies=[{"name": "default"}])


def test_three_flags_are_promoted_in_six_clicks(walk, promotable):
    in_production = Strategy.objects.filter(flag__name__in=NAMES, environment="production")
    page = walk("admin", "/projects/checkout/")
    page.press("Environments", within="Project")
    assert page.control("Differs")["aria-current"] == "true"
    for name in NAMES:
        page.tick(f"Select {name}")
    page.press("Promote to production…")
    assert "Promote 3 flags to production" in page.heading
    assert not in_production.exists()
    page.press("Promote 3 flags")
    assert "3 flags promoted." in page.text
    assert page.presses == 6
    assert in_production.count() == 3
    page.press("Undo promotion…")
    page.press("Undo promotion to")
    assert "Undone by " in page.text
    assert not in_production.exists()


def test_a_flag_is_promoted_from_its_page(walk, promotable):
    page = walk("admin", "/projects/checkout/features/first-flag/")
    page.press("Promote…")
    page.press("Promote to production…")
    assert "Promote 1 flag to production" in page.heading


def test_what_is_pasted_is_not_cut(walk):
    page = walk("admin", "/projects/checkout/features/new")
    assert not page.field("Name").has_attr("maxlength")
    page.fill("Name", "x" * 101)
    page.press("Create flag")
    assert "at most 100 characters" in page.text
    assert page.value("Name") == "x" * 101
