"""The lens: chosen once with ?as=, it says in every list of flags and on each flag what one user gets."""

import re
from html import unescape
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from groups.access import Caller
from playground.models import SavedContext
from playground.user_runs.file import forget_own_users, keep_own_users
from projects.flags.actions import update_flag
from projects.flags.environments.actions import disable_flag
from projects.models import Project
from projects.models.versions import VERSIONS
from releases.derive import ProposedChange
from releases.requests.propose import send_changes
from tests.support.cast import make_project
from tests.support.flags import depend
from tests.support.page_text import page_text
from tests.support.playground import live_flag

pytestmark = pytest.mark.django_db
LIST, FLAG = "/projects/shop/", "/projects/shop/features/cart/"
ONLY_42 = [{"name": "userWithId", "parameters": {"userIds": "42"}}]


@pytest.fixture
def flags(shop: Project) -> None:
    cart = live_flag("cart", strategies=ONLY_42)
    live_flag("always")
    live_flag("never", enabled=False)
    depend(live_flag("child"), cart)
    half = {"rollout": "50", "stickiness": "random", "groupId": "x"}
    live_flag("sometimes", strategies=[{"name": "flexibleRollout", "parameters": half}])
    live_flag("elsewhere", strategies=[{"name": "hostGroup"}])


def told(page: Any) -> dict[str, str]:
    """What the lens gets in production, by flag, in the list."""
    rows = re.findall(r'<tr id="flag-.*?</tr>', page.text, re.DOTALL)
    return {
        name[1]: unescape(pill[1]).strip()
        for row in rows
        if (name := re.search(r'features/([\w-]+)/"', row))
        and (pill := re.search(r'environment=production[^"]*">.*?</span>([^<]*)</a>', row))
    }


def test_it_answers_in_every_row_until_it_is_ended(browse: Any, flags: None) -> None:
    viewer = browse("viewer")
    assert told(viewer.get(LIST)) == {}
    for_42 = {"cart": "On", "always": "On", "never": "Off", "child": "On"}
    for_42 |= {"sometimes": "≈ 50 % of calls", "elsewhere": "Can't tell"}
    assert told(viewer.get(f"{LIST}?as=42")) == for_42
    assert told(viewer.get("/flags/")) == for_42
    assert "userId 42" in page_text(viewer.get("/access/tokens/"))
    assert told(viewer.get(f"{LIST}?as=7")) == for_42 | {"cart": "Off", "child": "Off"}
    assert viewer.get("/lens/", {"as": "", "next": LIST}).url == LIST
    assert told(viewer.get(LIST)) == {}


def test_it_answers_on_the_page_of_a_flag_and_leads_to_why(browse: Any, flags: None) -> None:
    viewer = browse("viewer")
    assert viewer.get("/lens/", {"as": " 42 ", "next": FLAG}).url == FLAG
    page = viewer.get(FLAG)
    links = re.findall(r'<a class="pill (on|off)" href="(/[^"]+)"', page.text)
    assert sorted(css for css, _ in links) == ["off", "on"]
    links.sort(reverse=True)
    why = viewer.get(links[0][1].replace("&amp;", "&"))
    assert "Why is cart on for userId 42?" in page_text(why)
    assert "As of" not in page_text(page)


def test_a_saved_context_that_one_may_read(browse: Any, flags: None) -> None:
    buyer = SavedContext.objects.create(name="Buyer", context={"userId": "42"}, project_id="shop")
    [link] = re.findall(
        r'href="(/lens/\?as[^"]+)"', browse("viewer").get(f"/playground/contexts/{buyer.pk}/").text
    )
    viewer = browse("viewer")
    viewer.get(link)
    assert told(viewer.get(LIST))["cart"] == "On"
    assert told(browse("viewer").get(f"{LIST}?as=saved:Buyer"))["cart"] == "On"
    make_project("secret")
    SavedContext.objects.update(project_id="secret")
    assert told(browse("member").get(f"{LIST}?as=saved:Buyer")) == {}
    assert "Buyer" not in page_text(browse("member").get(LIST))


def test_parameters_of_others_and_long_values(browse: Any, flags: None) -> None:
    viewer = browse("viewer")
    viewer.get("/playground/?as=json")
    assert told(viewer.get(LIST)) == {}
    page = viewer.get(LIST, {"as": "<b>" + "x" * 5000})
    assert "<b>xx" not in page.text
    assert told(page)["cart"] == "Off"
    assert viewer.get("/lens/", {"as": "1", "next": "https://example.org/"}).url == "/flags/"
    assert viewer.post("/lens/").status_code == 405


def test_a_saved_context_that_is_gone_leaves_the_choice_and_filters_stay(browse: Any, flags: None) -> None:
    viewer = browse("viewer")
    viewer.get(f"{LIST}?as=42")
    gone = viewer.get(f"{LIST}?as=saved:Gone&q=cart")
    assert "Saved context Gone not found." in page_text(gone)
    assert told(gone) == {"cart": "On"}
    [stop] = re.findall(r'href="(/lens/[^"]+)" aria-label="Stop looking as userId 42"', gone.text)
    assert viewer.get(unescape(stop)).url == f"{LIST}?q=cart"
    assert told(viewer.get(LIST)) == {}
    assert viewer.get("/lens/", {"as": "7", "next": f"{LIST}?as=42&q=cart"}).url == f"{LIST}?q=cart"


def test_it_takes_a_few_queries_for_any_number_of_flags(
    browse: Any, flags: None, django_assert_max_num_queries: Any
) -> None:
    viewer = browse("viewer")
    viewer.get(f"{LIST}?as=42")
    for number in range(20):
        live_flag(f"more-{number}", strategies=ONLY_42)
    with CaptureQueriesContext(connection) as without:
        viewer.get("/lens/", {"as": "", "next": LIST})
        viewer.get(LIST)
    with django_assert_max_num_queries(len(without) + 6):
        assert len(told(viewer.get(f"{LIST}?as=42"))) == 26


def read_noticed(page: str) -> list[str]:
    told = re.findall(r'<span class="of-lens">(.*?(?:</a>|nothing))', page, re.DOTALL)
    return [re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", each)).strip() for each in told]


def test_what_happened_says_whether_the_lens_noticed(browse: Any, flags: None) -> None:
    with connection.cursor() as cursor:
        for versions in VERSIONS.values():
            cursor.execute(f"UPDATE {versions._meta.db_table} SET valid_from = now() - interval '1 hour'")
    disable_flag("shop", "cart", "production", caller=Caller.system())
    update_flag("shop", "always", {"description": "New"}, caller=Caller.system())
    viewer = browse("viewer")

    def noticed(lens: str) -> list[str]:
        page = viewer.get("/what-happened/", {"environment": "production", "all": "yes", "as": lens})
        return sorted(read_noticed(page.text))

    assert noticed("42") == ["userId 42 On →to Off", "userId 42 noticed nothing"]
    assert noticed("7") == ["userId 7 noticed nothing"] * 2
    assert noticed("") == []


def test_a_request_says_what_the_lens_would_get(browse: Any, flags: None) -> None:
    off = ProposedChange("cart", "updateEnabled", {"enabled": False})
    request = send_changes("shop", "production", [off], caller=Caller.system())
    viewer = browse("viewer")
    page = f"/projects/shop/change-requests/{request.pk}/"

    def noticed(lens: str) -> list[str]:
        return read_noticed(viewer.get(f"{page}?as={lens}").text)

    assert noticed("42") == ["userId 42 On →to Off"]
    assert noticed("7") == ["userId 7 would notice nothing"]
    assert noticed("") == []


def test_one_of_the_own_users_is_chosen_with_all_values(browse: Any, people: Any, shop: Project) -> None:
    country = {"contextName": "country", "operator": "IN", "values": ["NO"]}
    live_flag("cart", strategies=[{"name": "default", "constraints": [country]}])
    caller, viewer = Caller(user=people["viewer"]), browse("viewer")
    body = b"userId,country\n41,SE\n42,NO\n420,DE\n"
    keep_own_users(body, 3, file_name="users.csv", caller=caller)
    SavedContext.objects.create(
        name="Norwegian buyer", context={"userId": "9", "properties": {"country": "NO"}}
    )

    page = viewer.get("/lens/", {"next": LIST})
    assert [link for link in re.findall(r'href="(/lens/[^"]+)"', page.text) if "own" in link]
    assert "Norwegian buyer country NO · userId 9" in page_text(page)
    typed = viewer.get("/lens/", {"as": "42", "next": LIST}, headers={"HX-Request": "true"})
    links = [unescape(link) for link in re.findall(r'href="(/lens/[^"]+)"', typed.text)]
    assert links == [f"/lens/?as=own%3A{each}&next=%2Fprojects%2Fshop%2F" for each in (42, 420)]
    assert told(viewer.get(LIST)) == {}  # typing chooses nobody
    assert told(viewer.get(links[0], follow=True)) == {"cart": "On"}
    assert told(viewer.get("/lens/?as=own%3A420&next=/projects/shop/", follow=True)) == {"cart": "Off"}
    assert "userId 420" in page_text(viewer.get("/flags/"))
    assert "Own user 42 not found." in page_text(
        browse("owner").get("/lens/?as=own%3A42&next=/flags/", follow=True)
    )

    forget_own_users(caller)
    assert told(viewer.get(LIST)) == {}


def test_its_bucket_is_marked_on_the_handle_of_roll_out(api: Any, browse: Any, shop: Project) -> None:
    half = {"rollout": "50", "stickiness": "default", "groupId": "cart"}
    flag = live_flag("cart", strategies=[{"name": "flexibleRollout", "parameters": half}])
    strategy = flag.strategies.get(environment="production")
    url = f"{FLAG}strategies/edit?environmentId=production&strategyId={strategy.pk}"
    owner = browse("owner")
    assert 'class="me"' not in owner.get(url).text
    owner.get("/lens/?as=42&next=/flags/")
    page = owner.get(url).text
    [x] = re.findall(r'<rect class="me" x="(\d+)%"', page)
    bucket = int(x) + 1
    assert f"userId 42 is in bucket {bucket}" in page
    assert told(owner.get(LIST)) == {"cart": "On" if bucket <= 50 else "Off"}
    default = "/api/admin/projects/shop/environments/production/default-strategy"
    for group, is_marked in (("", False), ("all", True)):
        body = {"name": "flexibleRollout", "parameters": half | {"groupId": group}}
        assert api["owner"].post(default, body).status_code == 200
        page = owner.get("/projects/shop/environments/production/strategy").text
        assert ('class="me"' in page) == is_marked, group
    strategy.parameters = half | {"stickiness": "random"}
    strategy.save()
    assert 'class="me"' not in owner.get(url).text
