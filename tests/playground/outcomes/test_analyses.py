"""Analyses of a flag: who is compared, with which shares, and what comes of it."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from playground.user_runs import worker
from projects.flags.environments import actions as environments
from projects.models import Strategy
from projects.strategies import actions as strategies
from tests.playground.outcomes.analyses import START, WHO, Clock, analyze, at, make, only, rollout, send

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def beside(monkeypatch: pytest.MonkeyPatch) -> None:
    """Analyses wait for ``worker.work()``."""
    monkeypatch.setattr(worker, "start", lambda: None)


@pytest.fixture
def clock(shop: Any, monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Sets the time of the next changes to so many minutes after START."""
    return lambda minutes: monkeypatch.setattr(timezone, "now", lambda: START + timedelta(minutes=minutes))


def make_table(
    users: range, minute: float = 60, buys: Callable[[int], bool] = lambda user: user % 4 == 0
) -> str:
    return "userId,time,bought,revenue\n" + "".join(
        f"{user},{at(minute)},{int(buys(user))},{user % 7}\n" for user in users
    )


def assigned(api: Any, users: range) -> set[int]:
    """Those who have the flag at half past."""
    body = "userId,time\n" + "".join(f"{user},{at(30)}\n" for user in users)
    url = "/api/admin/playground/assignments?environment=production&flag=f"
    lines = api["viewer"].post(url, data=body, content_type="text/csv").content.decode().splitlines()[1:]
    return {int(line.split(",")[0]) for line in lines if line.split(",")[2] == "on"}


def test_a_planted_effect_is_found(api: Any, clock: Clock) -> None:
    make(clock, rollout(50))
    users = range(2_000)
    having = assigned(api, users)
    table = make_table(users, buys=lambda user: user % 10 < (4 if user in having else 2))
    done = analyze(api, table, mean="revenue")
    assert (done["state"], done["problem"]) == ("done", None)
    result = done["result"]
    assert result["unit"] == "userId"
    assert (result["control"], result["sides"]) == ("off", ["off", "on"])
    [bought, revenue] = result["comparisons"]
    assert bought["sideValue"]["units"] == len(having)
    assert bought["sideValue"]["value"] == pytest.approx(sum(user % 10 < 4 for user in having) / len(having))
    assert bought["isSignificant"]
    assert bought["lift"] > 0.5
    assert not revenue["isSignificant"]
    assert result["shares"][0]["set"] == {"off": 0.5, "on": 0.5}
    assert bytes(only().body) == b""


NORWAY = {"contextName": "country", "operator": "IN", "values": ["NO"]}


def test_only_users_whom_the_flag_divided_are_compared(api: Any, clock: Clock) -> None:
    """Others have it off too, but by the rules: they would be no control."""
    make(clock, rollout(50, constraints=[NORWAY]))
    rows = (f"{user},{'NO' if user < 200 else 'DE'},{at(60)},{user % 2}\n" for user in range(1_000))
    done = analyze(api, "userId,country,time,bought\n" + "".join(rows))
    assert done["result"]["counts"]["units"] == 200
    assert done["result"]["leftOut"] == {"notDivided": 800}
    lacking = analyze(api, "userId,time,bought\n" + f"1,{at(60)},1\n")
    assert lacking["problem"] == "file: lacks country, on which f depends"


def test_rows_without_a_side_count_for_a_unit_that_has_one(api: Any, clock: Clock) -> None:
    """Visits tell the country, on which the flag depends; orders do not. Some come after the flag depended on a column
    that the table lacks, and some after it was turned off.
    """
    make(clock, rollout(50, constraints=[NORWAY]))
    [strategy] = Strategy.objects.all()
    clock(60 * 24)
    values = rollout(50, constraints=[NORWAY, NORWAY | {"contextName": "properties.plan"}])
    strategies.update_strategy("shop", "f", "production", str(strategy.pk), values, caller=WHO)
    clock(60 * 48)
    environments.disable_flag("shop", "f", "production", caller=WHO)
    clock(60 * 24 * 20)
    visits = "".join(f"{user},NO,{at(60)},,\n" for user in range(400))
    minutes = (90, 60 * 30, 60 * 50)
    orders = "".join(
        f"{user},{('', 'NO', 'NO')[user % 3]},{at(minutes[user % 3])},1,5\n" for user in range(400)
    )
    strangers = [f"{user},,{at(90)},1,100\n" for user in range(500, 540)]
    head = "userId,country,time,bought,revenue\n"
    result = analyze(api, head + visits + orders + "".join(strangers), mean="revenue")["result"]
    sides = [
        [each[side]["value"] for side in ("controlValue", "sideValue")] for each in result["comparisons"]
    ]
    assert sides == [[1, 1], [5, 5]]
    assert result["leftOut"] == {"unknown": 78, "notDivided": 362}
    counts = result["counts"]
    assert (counts["units"], counts["rows"], counts["rowsLeftOut"]) == (400, 840, 440)
    assert [check["state"] for check in result["checks"] if check["name"] == "left out"] == ["warning"]
    few = analyze(api, head + visits + "".join(strangers[:10]))["result"]
    assert [check["state"] for check in few["checks"] if check["name"] == "left out"] == ["passed"]


def test_different_shares_are_never_pooled(api: Any, clock: Clock) -> None:
    """At 10 %, then at 50 %; and 200 of other rules at the same time, whom too few had to be compared alone."""
    make(clock, rollout(10, constraints=[NORWAY]), rollout(80, constraints=[NORWAY | {"values": ["DE"]}]))
    first, _ = Strategy.objects.order_by("sort_order")
    clock(60 * 24)
    values = rollout(50, constraints=[NORWAY])
    strategies.update_strategy("shop", "f", "production", str(first.pk), values, caller=WHO)
    clock(60 * 24 * 20)
    rows = [f"{user},NO,{at(60 if user < 500 else 60 * 30)},{user % 3 == 0:d}\n" for user in range(1_000)]
    rows += [f"{user},DE,{at(60)},1\n" for user in range(1_000, 1_200)]
    result = analyze(api, "userId,country,time,bought\n" + "".join(rows))["result"]
    assert [(each["set"], sum(each["units"].values())) for each in result["shares"]] == [
        ({"off": 0.9, "on": 0.1}, 500),
        ({"off": 0.5, "on": 0.5}, 500),
    ]
    assert result["leftOut"] == {"otherShares": 200}
    assert result["comparisons"][0]["strata"] == 2
    [change] = result["changes"]
    assert (change["at"], change["sentence"]) == (at(60 * 24), "changed a strategy of f in production")


def test_users_who_changed_sides(api: Any, clock: Clock) -> None:
    make(clock, rollout(20))
    [strategy] = Strategy.objects.all()
    clock(60 * 24)
    strategies.update_strategy("shop", "f", "production", str(strategy.pk), rollout(60), caller=WHO)
    clock(60 * 24 * 20)
    table = make_table(range(500)) + make_table(range(500), 60 * 30).partition("\n")[2]
    left_out = analyze(api, table, crossovers="leave out")["result"]["counts"]
    assert left_out["crossovers"] == pytest.approx(200, abs=40)
    assert left_out["units"] == 500 - left_out["crossovers"]
    assert analyze(api, table)["result"]["counts"]["units"] == 500


BLUE_AND_GREEN = [
    {"name": name, "weight": 500, "weightType": "variable", "stickiness": "companyId"}
    for name in ("blue", "green")
]


def test_variants_against_one_of_them(api: Any, clock: Clock) -> None:
    make(clock, rollout(100, stickiness="companyId", variants=BLUE_AND_GREEN))
    head, rows = "companyId,userId,time,bought\n", "".join(f"c{n},{n},{at(60)},{n % 2}\n" for n in range(400))
    result = analyze(api, head + rows)["result"]
    assert (result["unit"], result["control"], result["sides"]) == ("companyId", "blue", ["blue", "green"])
    assert analyze(api, head + rows, control="green")["result"]["sides"] == ["green", "blue"]
    assert (
        analyze(api, head + rows, control="red")["problem"] == "control: must be one of blue, green, not red"
    )
    by_user = analyze(api, head + rows, unit="userId")["problem"]
    assert by_user == "unit: must be one of companyId, by which the flag divided its users"
    lacking = analyze(api, "userId,time,bought\n1,5,1\n")["problem"]
    assert lacking == "file: has no column companyId, by which the flag divided its users"


def test_too_many_variants(api: Any, clock: Clock) -> None:
    variants = [HALF | {"name": f"v{number}", "weight": 100} for number in range(10)]
    make(clock, rollout(50, variants=variants))
    problem = analyze(api, make_table(range(500)))["problem"]
    assert problem == "flag: had 11 sides in the period; at most 10 are compared"


@pytest.mark.parametrize(
    ("more", "path"),
    [
        ({"to": at(0)}, "to"),
        ({"from": at(-60 * 24 * 401)}, "from"),
        ({"from": "2026-11-21T09:00:00"}, "from"),
        ({"ratio": "revenue/"}, "ratio"),
        ({"mean": "bought"}, "mean"),
        ({"proportion": []}, "mean"),
        ({"mean": ["a", "b", "c", "d", "e"]}, "mean"),
        ({"mean": "profit"}, "file"),
        ({"segment": "plan"}, "file"),
        ({"method": "bayesian"}, "method"),
        ({"environment": "nowhere"}, "environment"),
    ],
)
def test_what_cannot_be_analyzed(api: Any, clock: Clock, more: dict[str, Any], path: str) -> None:
    make(clock, rollout(50))
    response = send(api, "userId,time,bought,revenue\n", **more)
    assert response.status_code == 400, response.content
    assert response.json()["details"][0]["path"] == path


def test_what_is_wrong_with_rows(api: Any, clock: Clock) -> None:
    make(clock, rollout(50))
    table = make_table(range(10))
    assert analyze(api, table + f"1,{at(1)},maybe,1\n")["problem"] == (
        'row 12, column bought: must be a number, true or false, or empty, not "maybe"'
    )
    assert analyze(api, table + "1,soon,1,1\n")["problem"].startswith("row 12, column time: must be a time")
    assert analyze(api, make_table(range(10), -60))["problem"] == "file: has no row in the period"
    # What the flag is now does not matter.
    environments.disable_flag("shop", "f", "production", caller=WHO)
    assert analyze(api, table)["state"] == "done"


def test_the_extra_is_missing(api: Any, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    make(clock, rollout(50))
    monkeypatch.setattr("playground.outcomes.experiment.is_installed", lambda: False)
    response = send(api, make_table(range(3)))
    assert response.status_code == 409
    assert "pip install 'flagadmin[experiments]'" in response.json()["message"]


HALF = {"weight": 500, "weightType": "variable", "stickiness": "default"}


@pytest.mark.parametrize(
    ("each", "expected"),
    [
        # Strategies with one group id put a user into one bucket.
        ([rollout(10), rollout(50)], {"off": 0.5, "on": 0.5}),
        ([rollout(50), rollout(10)], {"off": 0.5, "on": 0.5}),
        ([rollout(10), rollout(50, groupId="other")], {"off": 0.45, "on": 0.55}),
        (
            [rollout(10, variants=[HALF | {"name": "a"}, HALF | {"name": "b"}]), rollout(50)],
            {"a": 0.05, "b": 0.05, "off": 0.5, "on": 0.4},
        ),
        ([rollout(100, variants=[HALF | {"name": "a", "weight": 250, "weightType": "fix"}, HALF | {"name": "b", "weight": 750}])],
         {"a": 0.25, "b": 0.75}),
    ],
)  # fmt: skip
def test_shares_that_were_set(
    api: Any, clock: Clock, each: list[dict[str, Any]], expected: dict[str, float]
) -> None:
    """As exact numbers, which what the users got fits: seven standard errors would be a mistake."""
    make(clock, *each)
    result = analyze(api, make_table(range(4_000)))["result"]
    [part] = result["shares"]
    assert part["set"] == pytest.approx(expected, abs=1e-12)
    for side, share in expected.items():
        assert part["seen"][side] == pytest.approx(share, abs=7 * (share * (1 - share) / 4_000) ** 0.5)
    assert [check["state"] for check in result["checks"] if check["name"] == "shares"] == ["passed"]
