"""A change in production is proposed from the form, and approved from the start page."""

import re

import pytest

from groups.access import Caller
from groups.models import User
from projects.models import ProjectEnvironment, Strategy
from releases.derive import ProposedChange
from releases.models import ChangeRequest
from releases.requests.propose import send_changes
from tests.support.playground import live_flag
from tests.support.walks import read_text

CART = "/projects/checkout/features/zz-cart"


@pytest.fixture
def cart(scenery):
    """On for 0 % in production of the checkout, where a change needs an approval."""
    links = ProjectEnvironment.objects.filter(project="checkout", environment="production")
    links.update(required_approvals=1)
    parameters = {"rollout": "0", "stickiness": "userId", "groupId": "zz-cart"}
    return live_flag(
        "zz-cart", project="checkout", strategies=[{"name": "flexibleRollout", "parameters": parameters}]
    )


def test_half_is_proposed_and_sent_in_two_clicks(walk, cart):
    page = walk("admin", f"{CART}/")
    page.press("Roll out strategy 1 in production")
    page.fill("Rollout percentage", "50")
    page.press("Send for review")
    assert page.heading == "Roll out zz-cart to 50 % of users"
    assert "In review" in read_text(page.part("State").select_one("[aria-current]"))
    assert ChangeRequest.objects.get().state == "In review"
    assert page.presses == 2


def test_it_is_approved_from_the_start_page_in_two_clicks(walk, cart):
    strategy = Strategy.objects.get(flag=cart, environment="production")
    change = {"id": str(strategy.pk), "parameters": strategy.parameters | {"rollout": "50"}}
    author = Caller(user=User.objects.create(username="author", root_role_id=1))
    proposed = [ProposedChange("zz-cart", "updateStrategy", change)]
    send_changes("checkout", "production", proposed, title="Half of them", caller=author)
    page = walk("admin", "/")
    assert re.search(r"\d+(\.\d)? % of users", page.text)
    page.press("Half of them")
    assert "of 10,000 generated users change" in page.text
    page.press("Approve")
    assert "Approved" in read_text(page.part("State").select_one("[aria-current]"))
    assert " users changing" in read_text(page.part("Activity"))
    assert page.presses == 2
