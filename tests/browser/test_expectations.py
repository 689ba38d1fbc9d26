"""Browser tests of a project that refuses changes that break an expectation: be refused, then save anyway."""

import pytest
from playwright.sync_api import expect

from flagadmin.core.audit.models import AuditEvent
from playground.models import SavedContext
from projects.models import FlagEnvironment, Project
from tests.browser.conftest import fits, make_narrow
from tests.browser.journeys import Clicks

pytestmark = pytest.mark.usefixtures("scenery")
FLAG = "/projects/checkout/features/checkout-redesign/"
WHO = "Wholesale user"


def is_on(environment):
    return FlagEnvironment.objects.get(flag__name="checkout-redesign", environment=environment).enabled


def expects_it_to_be_on(environment):
    """As it is: what is random or off is expected of nobody."""
    Project.objects.filter(pk="checkout").update(refuse_broken_expectations=True)
    FlagEnvironment.objects.filter(flag__name="checkout-redesign", environment=environment).update(
        enabled=True
    )
    flag = FlagEnvironment.objects.get(flag__name="checkout-redesign", environment=environment).flag
    flag.strategies.filter(environment=environment).delete()
    flag.strategies.create(environment_id=environment, name="default")
    expectation = {
        "flag": flag.name,
        "environment": environment,
        "enabled": True,
        "variant": None,
    }
    SavedContext.objects.create(
        name=WHO,
        context={"userId": "1"},
        expectations=[expectation],
        enforced_in={flag.name: flag.project_id},
    )


@pytest.mark.parametrize("script", [True, False])
def test_an_expectation_is_broken_and_saved_anyway(visit, check_accessible, script):
    expects_it_to_be_on("production")
    page = visit("admin", FLAG, script=script)
    clicks = Clicks(page)

    clicks.on(page.get_by_role("switch", name="checkout-redesign in production"))
    if script:
        expect(page.get_by_role("region", name="Who changes")).to_contain_text(
            "Project Checkout refuses that"
        )
    clicks.on(page.get_by_role("button", name="Turn off checkout-redesign in production"))

    expect(page.get_by_role("heading", name="Expectations would break")).to_be_visible()
    expect(page.get_by_role("main")).to_contain_text(f"{WHO}: checkout-redesign: on → off in production")
    assert is_on("production")
    if script:
        check_accessible(page)
        make_narrow(page)
        fits(page)
    clicks.on(page.get_by_role("button", name="Save anyway"))

    expect(page.get_by_text("Turned off checkout-redesign in production.")).to_be_visible()
    assert clicks.count == 3
    assert not is_on("production")
    [event] = AuditEvent.objects.filter(type="expectation-overridden", subject=WHO)
    assert (event.actor_name, event.feature, event.subject) == ("admin", "checkout-redesign", WHO)


def test_a_switch_that_acts_at_once_asks_in_its_place(visit):
    expects_it_to_be_on("development")
    page = visit("admin", FLAG)
    page.get_by_role("switch", name="checkout-redesign in development").click()

    expect(page.get_by_role("heading", name="Expectations would break")).to_be_visible()
    assert is_on("development")
    page.get_by_role("link", name="Cancel").click()
    expect(page.get_by_role("switch", name="checkout-redesign in development")).to_be_checked()

    page.get_by_role("switch", name="checkout-redesign in development").click()
    page.get_by_role("button", name="Save anyway").click()
    expect(page.get_by_role("switch", name="checkout-redesign in development")).not_to_be_checked()
    assert not is_on("development")
