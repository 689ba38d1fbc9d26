"""POST /api/admin/constraints/validate."""

from projects.models import ContextField
from tests.support.for_each import for_each
from tests.support.records import refused

PATH = "/api/admin/constraints/validate"
FIVE = {"contextName": "amount", "operator": "NUM_EQ", "value": "5"}


def test_one_that_could_be_stored(api):
    response = api["viewer"].post(PATH, FIVE, format="json")
    assert (response.status_code, response.content) == (204, b"")


@for_each(
    ("wrong", "path"),
    [
        ({"value": "abc"}, "value"),
        ({"value": None}, "value"),
        ({"operator": "NUM_ABOUT"}, "operator"),
        ({"operator": "IN", "values": ["", "b"]}, "values[0]"),
        ({"surprise": 1}, "surprise"),
    ],
)
def test_one_that_could_not(api, wrong, path):
    record = refused(api["viewer"].post(PATH, FIVE | wrong, format="json"), 400, "ValidationError")
    assert record["details"][0]["path"] == path


def test_legal_values_count(api, db):
    ContextField.objects.create(name="plan", legal_values=[{"value": "gold"}])
    body = {"contextName": "plan", "operator": "IN", "values": ["tin"]}
    record = refused(api["viewer"].post(PATH, body, format="json"), 400, "ValidationError")
    assert record["details"][0]["path"] == "values[0]"
