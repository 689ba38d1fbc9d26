"""A change that breaks an expectation, which is asked before and saved in a transaction of its own."""

import pytest

from flagadmin.core.audit.models import AuditEvent
from playground.models import SavedContext
from projects.models import Flag, Project
from tests.support.flags import is_on
from tests.support.scenery import make_scenery


@pytest.mark.django_db(transaction=True)
def test_a_broken_expectation_is_saved_anyway_in_three_clicks(walk):
    make_scenery()
    Project.objects.filter(pk="checkout").update(refuse_broken_expectations=True)
    flag = Flag.objects.get(name="checkout-redesign")
    flag.environments.filter(environment="production").update(enabled=True)
    flag.strategies.filter(environment="production").delete()
    flag.strategies.create(environment_id="production", name="default")
    expected = {"flag": flag.name, "environment": "production", "enabled": True, "variant": None}
    SavedContext.objects.create(
        name="Wholesale user",
        context={"userId": "1"},
        expectations=[expected],
        enforced_in={flag.name: "checkout"},
    )
    page = walk("admin", "/projects/checkout/features/checkout-redesign/")
    page.press("checkout-redesign in production")
    page.press("Turn off checkout-redesign in production")
    assert "Expectations would break" in page.text
    assert "Wholesale user: checkout-redesign: on → off in production" in page.text
    assert is_on("checkout-redesign")
    page.press("Save anyway")
    assert "Turned off checkout-redesign in production." in page.status_message
    assert page.presses == 3
    assert not is_on("checkout-redesign")
    [event] = AuditEvent.objects.filter(type="expectation-overridden", subject="Wholesale user")
    assert (event.actor_name, event.feature) == ("admin", "checkout-redesign")
