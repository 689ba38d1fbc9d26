"""The tag types API."""

from projects.models import FlagTag
from tests.support.flags import make_flag
from tests.support.for_each import for_each
from tests.support.records import events, refused

URL = "/api/admin/tag-types"
BODY = {"name": "team", "description": "who owns it", "color": "#00AAFF", "icon": "T"}


def test_created_and_changed_leaving_what_is_not_given(api):
    assert api["editor"].post(URL, BODY).status_code == 201
    assert api["viewer"].get(f"{URL}/team").json() == {"version": 1, "tagType": BODY}
    assert {"name": "team"}.items() <= api["viewer"].get(URL).json()["tagTypes"][1].items()
    assert events("tag-type-created")[0].after == BODY

    assert api["editor"].put(f"{URL}/team", {"description": "new"}).status_code == 200
    assert api["viewer"].get(f"{URL}/team").json()["tagType"] == BODY | {"description": "new"}
    (event,) = events("tag-type-updated")
    assert (event.before["description"], event.after["description"]) == ("who owns it", "new")


def test_deleted_when_no_flag_has_such_a_tag(api):
    api["editor"].post(URL, BODY)
    tag = FlagTag.objects.create(flag=make_flag("live", "default"), tag_type_id="team", value="web")
    record = refused(api["editor"].delete(f"{URL}/team"), 409, "ConflictError")
    assert "live" in record["message"]
    tag.delete()
    assert api["editor"].delete(f"{URL}/team").status_code == 200
    refused(api["editor"].get(f"{URL}/team"), 404, "NotFoundError")
    assert events("tag-type-deleted")[0].before == BODY


def test_types_that_could_be_created_or_are_unknown(api):
    response = api["editor"].post(f"{URL}/validate", BODY)
    assert response.json() == {"valid": True, "tagType": BODY}
    refused(api["editor"].post(f"{URL}/validate", {"name": "simple"}), 409, "NameExistsError")
    refused(api["editor"].post(URL, {"name": "simple"}), 409, "NameExistsError")

    for response in (
        api["editor"].get(f"{URL}/nope"),
        api["editor"].put(f"{URL}/nope", {}),
        api["editor"].delete(f"{URL}/nope"),
    ):
        refused(response, 404, "NotFoundError")


@for_each(
    ("change", "path"),
    [
        ({"name": "a"}, "name"),
        ({"name": "x" * 51}, "name"),
        ({"name": "a b"}, "name"),
        ({"color": "red"}, "color"),
    ],
)
def test_values_that_are_refused(api, change, path):
    for url in (URL, f"{URL}/validate"):
        record = refused(api["editor"].post(url, BODY | change), 400, "ValidationError")
        assert [problem["path"] for problem in record["details"]] == [path]
