"""A flag that divided its users for two weeks, and tables of what they did."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from django.utils import timezone

from flagadmin.core.http.responses import iso
from groups.access import Caller
from playground.models import Analysis
from playground.user_runs import worker
from projects.flags.actions import NewFlag, create_flag
from projects.flags.environments import actions as environments
from projects.strategies import actions as strategies

WHO = Caller.system()
Clock = Callable[[float], None]
URL = "/api/admin/projects/shop/features/f/analyses"
START = timezone.now().replace(microsecond=0) - timedelta(days=20)
END = START + timedelta(days=14)


def at(minutes: float) -> str:
    return iso(START + timedelta(minutes=minutes))


def query(**more: Any) -> str:
    values = {"environment": "production", "name": "Does it sell?", "from": iso(START), "to": iso(END)}
    pairs = [*(values | {"proportion": "bought"} | more).items()]
    return "&".join(
        f"{key}={each}" for key, value in pairs for each in (value if isinstance(value, list) else [value])
    )


def send(api: Any, table: str | bytes, who: str = "viewer", **more: Any) -> Any:
    return api[who].post(f"{URL}?{query(**more)}", data=table, content_type="text/csv")


def analyze(api: Any, table: str | bytes, **more: Any) -> dict[str, Any]:
    """The analysis as the API has it, after the process beside the workers has done its work."""
    response = send(api, table, **more)
    assert response.status_code == 202, response.content
    worker.work()
    answer: dict[str, Any] = api["viewer"].get(f"{URL}/{response.json()['id']}").json()
    return answer


def only() -> Analysis:
    return Analysis.objects.get()


def rollout(percent: int, **others: Any) -> dict[str, Any]:
    parameters = {"stickiness": others.pop("stickiness", "default"), "groupId": others.pop("groupId", "f")}
    return {"name": "flexibleRollout", "parameters": parameters | {"rollout": str(percent)}} | others


def make(clock: Clock, *each: dict[str, Any]) -> None:
    """Flag f, enabled with these strategies an hour before START."""
    clock(-60)
    create_flag("shop", NewFlag(name="f"), caller=WHO)
    for strategy in each:
        strategies.add_strategy("shop", "f", "production", strategy, caller=WHO)
    environments.enable_flag("shop", "f", "production", caller=WHO)
    clock(60 * 24 * 20)
