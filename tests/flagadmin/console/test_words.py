"""How much there is to read on a page of the demo: its words with everything unfolded, and those of its tooltips."""

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
    tooltips = [str(each["title"]) for each in main.select("[title]")]
    return len(WORD.findall(" ".join([read_text(main, without=NOT_READ), *tooltips])))


def test_home_and_requests_are_read_in_a_minute(loaded_demo):
    walk = Walk(loaded_demo, "/")
    requests = ChangeRequest.objects.exclude(state=ChangeRequest.State.DRAFT)
    pages = ["/", *(f"/projects/{each.project_id}/change-requests/{each.pk}/" for each in requests)]
    counts = {address: count_words(walk, address) for address in pages}
    assert len(counts) > 5
    assert max(counts.values()) <= 250, counts
    assert counts["/"] > 100
