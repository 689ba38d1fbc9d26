"""What Unleash's console asks on every page about paid features is answered."""

from tests.support.cast import client
from tests.support.for_each import for_each

ANSWERS = {
    "banners": {"banners": []},
    "license/check": {"isValid": True, "message": ""},
    "user-access-requests": [],
}


@for_each("path", ANSWERS)
def test_it_is_answered(api, path):
    answer = api["viewer"].get(f"/api/admin/{path}")
    assert (answer.status_code, answer.json()) == (200, ANSWERS[path])
    assert client().get(f"/api/admin/{path}").status_code == 401
