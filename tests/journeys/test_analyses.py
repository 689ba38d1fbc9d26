"""Did it work? From the page of a flag to what came of it, without JavaScript."""

from datetime import timedelta

import pytest
from django.utils import timezone

from groups.access import Caller
from playground.user_runs import worker
from projects.flags.actions import NewFlag, create_flag
from projects.flags.environments import actions as environments
from projects.strategies import actions as strategies

DAY = timedelta(days=1)
WHO = Caller.system()


@pytest.fixture
def divided(scenery, monkeypatch):
    """Half of the users have had the flag for a month; work waits for ``worker.work()``."""
    monkeypatch.setattr(worker, "start", lambda: None)
    now = timezone.now()
    with monkeypatch.context() as patch:
        patch.setattr(timezone, "now", lambda: now - 30 * DAY)
        create_flag("checkout", NewFlag(name="one-page"), caller=WHO)
        parameters = {"rollout": "50", "stickiness": "userId", "groupId": "one-page"}
        strategy = {"name": "flexibleRollout", "parameters": parameters}
        strategies.add_strategy("checkout", "one-page", "production", strategy, caller=WHO)
        environments.enable_flag("checkout", "one-page", "production", caller=WHO)
    return now


def test_a_viewer_asks_what_came_of_a_flag(walk, divided):
    page = walk("viewer", "/projects/checkout/features/one-page/")
    page.press("Did it work?")
    assert "No analyses of this flag." in page.text
    page.press("Analyze it")
    page.fill("Question", "Do more people finish?")
    moments = (divided - (1 + user % 10) * DAY for user in range(400))
    rows = [f"{user},{moment.isoformat()},{user % 2}\n" for user, moment in enumerate(moments)]
    page.attach("Table", "visits.csv", ("userId,time,finished\n" + "".join(rows)).encode())
    page.fill("Yes or no", "finsihed")
    page.press("Analyze")
    assert "has no column finsihed. It has finished, time, userId" in page.text
    page.attach("Table", "visits.csv", ("userId,time,finished\n" + "".join(rows)).encode())
    page.fill("Yes or no", "finished")
    page.press("Analyze")
    assert page.heading == "Do more people finish?"
    assert "Waiting to start." in page.text
    worker.work()
    page.open(page.address)
    assert "finished" in page.text
    page.press("Analyses")
    assert "Do more people finish?" in page.rows()[0]
