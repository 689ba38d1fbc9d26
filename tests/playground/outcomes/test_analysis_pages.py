"""The pages of analyses: the form, the list, what came out, and who sees it."""

import re
from datetime import timedelta
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.utils import timezone

from playground.models import Analysis
from playground.user_runs import worker
from projects.models import Strategy
from projects.strategies.actions import update_strategy
from tests.playground.outcomes.analyses import END, START, WHO, at, make, only, rollout
from tests.support.cast import make_project
from tests.support.page_text import page_text
from tests.support.playground import live_flag

pytestmark = pytest.mark.django_db
FLAG = "/projects/shop/features/f/"
NEW = f"{FLAG}analyses/new"
ALL = "/playground/analyses/"
TIMES = {"since": f"{START:%Y-%m-%dT%H:%M:%S}", "until": f"{END:%Y-%m-%dT%H:%M:%S}"}


@pytest.fixture(autouse=True)
def divided(shop: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of the users have had flag f for three weeks; 60 % since the tenth day of the period."""
    monkeypatch.setattr(worker, "start", lambda: None)
    with monkeypatch.context() as patch:

        def clock(minutes: float) -> None:
            patch.setattr(timezone, "now", lambda: START + timedelta(minutes=minutes))

        make(clock, rollout(50))
        clock(60 * 24 * 10)
        strategy = str(Strategy.objects.get().pk)
        update_strategy("shop", "f", "production", strategy, rollout(60), caller=WHO)


def make_table(plan: str = "pro") -> str:
    """Everybody came on one of twelve days; those of the first half have the plan."""
    rows = (f"{n},{at(n % 12 * 1440 + 60)},{n % 3},{plan if n < 300 else 'free'}\n" for n in range(600))
    return "userId,time,orders,plan\n" + "".join(rows)


def upload(browse: Any, table: str = "", who: str = "viewer", **more: Any) -> Any:
    file = SimpleUploadedFile("visits.csv", (table or make_table()).encode())
    values = {"name": "Does it sell?", "file": file, "environment": "production", "mean": "orders"}
    choices = {"method": "sequential", "crossovers": "leave out"}
    return browse(who).post(NEW, values | TIMES | choices | more)


def read_page(browse: Any, url: str, who: str = "viewer") -> str:
    return " ".join(page_text(browse(who).get(url)).split())


def test_from_the_form_to_what_came_out(browse: Any) -> None:
    assert f'href="{ALL}?flag=f"' in browse("viewer").get(FLAG).text
    assert f'href="{NEW}"' in browse("viewer").get(f"{ALL}?flag=f").text
    response = upload(browse, proportion="orders", mean="", segment="plan", exposure="")
    url = f"{FLAG}analyses/{only().pk}/"
    assert response["Location"] == url
    waiting = browse("viewer").get(url)
    assert waiting["Refresh"] == "2"
    assert "Waiting to start." in page_text(waiting)
    assert "Waiting to start." in page_text(browse("viewer").get(f"{url}progress"))
    worker.work()
    assert browse("viewer").get(f"{url}progress")["HX-Redirect"] == url
    result = only().result
    text = read_page(browse, url)
    assert result["sentence"] in text
    assert all(check["sentence"] in text for check in result["checks"])
    [comparison] = result["comparisons"]
    lift = f"{100 * comparison['lift']:+.1f} %".replace("-", "−")
    assert f"orders {100 * comparison['controlValue']['value']:.2f} %" in text
    assert lift in text
    assert "changed a strategy of f in production" in text
    assert [part["set"] for part in result["shares"]] == [{"off": 0.5, "on": 0.5}, {"off": 0.4, "on": 0.6}]
    assert "plan: free 300 units" in text
    assert "plan: pro 300 units" in text
    html = browse("viewer").get(url).text
    assert len(re.findall(r"<polyline points=", html)) == 1
    assert "nan" not in html
    listed = read_page(browse, f"{ALL}?flag=f")
    assert "Does it sell? f production" in listed
    assert result["sentence"][:100] in listed
    assert result["sentence"] in browse("viewer").get(f"{ALL}?format=csv").getvalue().decode()


def test_only_readers_of_the_flag_see_it(browse: Any) -> None:
    make_project("docs")
    live_flag("hidden", "docs")
    upload(browse, who="reader")
    Analysis.objects.update(name="Secret plan")
    url = f"{FLAG}analyses/{only().pk}/"
    for address in (url, f"{url}progress", f"{url}result", NEW):
        assert browse("outsider").get(address).status_code == 404
    assert browse("outsider").post(f"{url}delete").status_code == 404
    assert "Secret plan" not in read_page(browse, ALL, "outsider")
    assert "Secret plan" in read_page(browse, ALL, "reader")
    # A flag of another project has another address, and its readers another list.
    assert browse("viewer").get(f"/projects/docs/features/hidden/analyses/{only().pk}/").status_code == 404
    assert "Delete" not in read_page(browse, url)
    assert browse("viewer").post(f"{url}delete").status_code in (302, 403)
    assert Analysis.objects.exists()
    gone = browse("reader").post(f"{url}delete", follow=True)
    assert "Stopped the analysis Secret plan." in page_text(gone)
    assert not Analysis.objects.exists()


def test_the_download_runs_no_formula(browse: Any) -> None:
    table = make_table().replace("orders", "+orders")
    upload(browse, table, mean="+orders")
    url = f"{FLAG}analyses/{only().pk}/"
    assert browse("viewer").get(f"{url}result").status_code == 409
    worker.work()
    assert f'href="{url}result?spreadsheet=true"' in browse("viewer").get(url).text
    assert b"\r\n'+orders," in browse("viewer").get(f"{url}result?spreadsheet=true").getvalue()


def test_the_form_names_what_is_wrong(browse: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "has no column profit" in page_text(upload(browse, mean="profit"))
    swapped = page_text(upload(browse, since=TIMES["until"], until=TIMES["since"]))
    assert "must be after" in swapped
    assert "must name 1 to 5 measures" in page_text(upload(browse, mean="")).lower()
    assert not Analysis.objects.exists()
    upload(browse, make_table() + f"1,{at(5)},many,pro\n")
    worker.work()
    failed = read_page(browse, f"{FLAG}analyses/{only().pk}/")
    assert (
        'This analysis failed. row 602, column orders: must be a number, true or false, or empty, not "many"'
        in failed
    )
    monkeypatch.setattr("playground.outcomes.experiment.is_installed", lambda: False)
    assert "pip install 'flagadmin[experiments]'" in page_text(browse("viewer").get(NEW))
    assert "pip install 'flagadmin[experiments]'" in page_text(upload(browse))
