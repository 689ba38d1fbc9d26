"""Words that URLs have in place of a name are no names: what has one could be neither read nor deleted by its address."""

from projects.context_fields.actions import context_field_problems
from projects.environments.actions import environment_problems
from projects.models import ContextField, Environment, TagType
from projects.tag_types.rules import tag_type_problems
from tests.support.for_each import for_each


@for_each(
    ("subject", "member", "name"),
    [
        ("projects", "id", "archive"),
        ("projects", "id", "roles"),
        *(("environments", "name", name) for name in ("project", "sort-order", "update", "validate")),
        ("context", "name", "validate"),
        ("tag-types", "name", "validate"),
    ],
)
def test_a_reserved_name_is_refused_where_it_is_created_and_checked(api, subject, member, name):
    body = (
        {member: name, "name": name, "type": "test"}
        if subject == "environments"
        else {member: name, "name": name}
    )
    for path in (subject, f"{subject}/validate"):
        refused = api["admin"].post(f"/api/admin/{path}", body, format="json")
        assert refused.status_code == 400
        assert refused.json()["message"] == f"{member}: {name} is reserved and cannot be used"


@for_each(
    ("made", "find_problems"),
    [
        (Environment(name="validate", type="test"), environment_problems),
        (ContextField(name="validate"), context_field_problems),
        (TagType(name="validate"), tag_type_problems),
    ],
)
def test_what_has_a_reserved_name_from_an_earlier_version_can_be_edited(db, made, find_problems):
    assert list(find_problems(made))
    made.save()
    assert not list(find_problems(type(made).objects.get(name="validate")))
