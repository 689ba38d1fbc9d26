"""How much there is to read on a page of the demo: its words with everything unfolded, and those of its tooltips.

Menus that a button opens count too. Names that only screen readers read do not, and neither do pictures.
"""

import re

import pytest

from releases.models import ChangeRequest
from tests.support.demo import loaded_demo
from tests.support.walks import Walk, read_text

__all__ = ["loaded_demo"]

pytestmark = pytest.mark.django_db
WORD = re.compile(r"[^\W\d_][\w'’.-]+")
NOT_READ = "svg, script, template, datalist, [hidden], dialog:not([open]), .unseen"


def count_words(walk, address):
    walk.open(address)
    assert walk.status == 200
    [main] = walk.page.select("main")
    return count_in(main)


def count_in(part):
    unread = set(map(id, part.select(NOT_READ)))
    tooltips = [
        str(each["title"])
        for each in part.select("[title]")
        if not any(id(around) in unread for around in (each, *each.parents))
    ]
    return len(WORD.findall(" ".join([read_text(part, without=NOT_READ), *tooltips])))


@pytest.fixture
def walk(loaded_demo):
    return Walk(loaded_demo, "/")


@pytest.mark.parametrize("name", ["checkout-redesign", "one-click-pay"])
@pytest.mark.parametrize("lens", [None, "42"])
def test_a_flags_page_is_read_in_a_minute(walk, name, lens):
    if lens:
        walk.open(f"/lens/?as={lens}&next=/")
    assert 100 < count_words(walk, f"/projects/checkout/features/{name}/") <= 280


def test_all_flags_with_the_lens_are_read_in_two(walk):
    walk.open("/lens/?as=42&next=/")
    number = count_words(walk, "/flags/")
    assert len(walk.page.select("#flags tbody tr")) > 20
    assert 300 < number <= 550


def test_home_and_requests_are_read_in_a_minute(loaded_demo):
    walk = Walk(loaded_demo, "/")
    requests = ChangeRequest.objects.exclude(state=ChangeRequest.State.DRAFT)
    pages = ["/", *(f"/projects/{each.project_id}/change-requests/{each.pk}/" for each in requests)]
    counts = {address: count_words(walk, address) for address in pages}
    assert len(counts) > 5
    assert max(counts.values()) <= 250, counts
    assert counts["/"] > 100
