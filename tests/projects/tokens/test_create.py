"""POST /api/admin/api-tokens: a token has access to what the request names, and nothing by default."""

from django.utils import timezone

from flagadmin.core.audit.models import AuditEvent
from groups.models import ApiToken
from tests.support.cast import client
from tests.support.for_each import for_each

URL = "/api/admin/api-tokens"
BACKEND = {"tokenName": "checkout", "type": "backend", "environment": "production", "projects": ["shop"]}


def check_problem(response, path):
    record = response.json()
    assert response.status_code == 400, record
    assert record["name"] == "ValidationError"
    assert path in [problem["path"] for problem in record["details"]]
    return record


def test_a_backend_token_has_its_scope_and_identifier(api):
    response = api["admin"].post(URL, BACKEND)
    assert response.status_code == 201
    token = response.json()
    assert token["secret"].startswith("shop:production.")
    assert token["secret"].startswith(token["identifier"])
    assert len(token["secret"].removeprefix(token["identifier"])) == 44
    expected = {
        "tokenName": "checkout",
        "type": "backend",
        "environment": "production",
        "projects": ["shop"],
        "project": "shop",
        "alias": None,
        "expiresAt": None,
    }
    assert token | expected == token
    assert client(token["secret"]).get("/api/admin/x").status_code == 404  # known: else it were 401


@for_each(
    ("path", "body"),
    [
        (URL, BACKEND),
        (URL, {"tokenName": "a", "type": "admin"}),
        ("/api/admin/projects/shop/api-tokens", BACKEND),
        ("/api/admin/user/tokens", {"description": "laptop"}),
    ],
)
def test_a_token_that_has_expired_is_not_created(api, path, body):
    caller = api["owner"] if path.endswith("user/tokens") else api["admin"]
    check_problem(caller.post(path, body | {"expiresAt": "2020-01-01T00:00:00Z"}), "expiresAt")
    assert not ApiToken.objects.filter(name__in=["checkout", "a", "laptop"]).exists()


@for_each("token_type", ["client", "CLIENT", "Backend"])
def test_client_is_the_older_name_of_backend(api, token_type):
    response = api["admin"].post(URL, BACKEND | {"type": token_type})
    assert response.json()["type"] == token_type.lower()
    assert ApiToken.objects.get(name="checkout").kind == "backend"
    (listed,) = api["admin"].get(f"{URL}/checkout").json()["tokens"]
    assert listed["type"] == token_type.lower()


@for_each(
    ("scope", "projects", "start"),
    [
        ({"environment": "production", "project": "shop"}, ["shop"], "shop:production."),
        ({"environment": "production", "projects": ["shop", "default", "shop"]}, ["default", "shop"], "[]:production."),
        ({"environment": "production", "projects": ["*"]}, ["*"], "*:production."),
        ({"environment": "production", "projects": "*"}, ["*"], "*:production."),
        ({"environment": "production", "project": "*", "projects": None}, ["*"], "*:production."),
        ({"type": "frontend"}, ["*"], "*:development."),
        ({"type": "frontend", "projects": None}, ["*"], "*:development."),
        ({"type": "frontend", "project": None, "environment": None}, ["*"], "*:development."),
    ],
)  # fmt: skip
def test_the_scope_of_a_token(api, scope, projects, start):
    response = api["admin"].post(URL, {"tokenName": "one", "type": "backend"} | scope)
    assert response.status_code == 201
    token = response.json()
    assert (token["projects"], token["project"]) == (projects, ",".join(projects))
    assert token["secret"].startswith(start)
    assert start.endswith(f":{token['environment']}.")
    assert ApiToken.objects.get(id=token["id"]).all_projects is (projects == ["*"])


@for_each(
    ("change", "path"),
    [
        ({"projects": []}, "projects"),
        ({"projects": ["*", "shop"]}, "projects"),
        ({"project": "default"}, "project"),
        ({"projects": ["nosuch"]}, "projects[0]"),
        ({"environment": "nosuch"}, "environment"),
        ({"environment": "*"}, "environment"),
        ({"type": "robot"}, "type"),
        ({"tokenName": ""}, "tokenName"),
        ({"expiresAt": "tomorrow"}, "expiresAt"),
        ({"type": "admin"}, "projects"),
    ],
)
def test_a_malformed_token_is_refused_at_its_path(api, change, path):
    check_problem(api["admin"].post(URL, BACKEND | change), path)
    assert not ApiToken.objects.filter(name="checkout").exists()


def test_unknown_names_come_together_and_name_the_choices(api):
    record = api["admin"].post(URL, BACKEND | {"environment": "nosuch", "projects": ["nope"]}).json()
    messages = {problem["path"]: problem["message"] for problem in record["details"]}
    assert "development, production" in messages["environment"]
    assert "default, shop" in messages["projects[0]"]


def test_a_token_for_an_archived_project_is_refused(api, shop):
    shop.archived_at = timezone.now()
    shop.save()
    check_problem(api["admin"].post(URL, BACKEND), "projects[0]")


def test_admin_token(api):
    token = api["admin"].post(URL, {"tokenName": "ops", "type": "admin"}).json()
    assert (token["environment"], token["projects"]) == ("*", ["*"])
    assert client(token["secret"]).get(URL).status_code == 200


def test_who_may_make_one_kind_may_not_make_another(api, people):
    from groups.models import Role, RolePermission

    role = Role.objects.create(name="SDK keys", type="root-custom")
    RolePermission.objects.create(role=role, permission="CREATE_CLIENT_API_TOKEN")
    people["viewer"].root_role = role
    people["viewer"].save()
    assert api["viewer"].post(URL, BACKEND).status_code == 201
    assert api["viewer"].post(URL, BACKEND | {"type": "frontend"}).status_code == 403
    assert api["viewer"].post(URL, {"tokenName": "ops", "type": "admin"}).status_code == 403


def test_the_secret_is_kept_nowhere(api):
    secret = api["admin"].post(URL, BACKEND).json()["secret"]
    token = ApiToken.objects.get(name="checkout")
    assert secret not in repr(vars(token))
    assert secret not in api["admin_token"].get(URL).content.decode()
    event = AuditEvent.objects.get(type="api-token-created")
    assert (event.project, event.environment, event.subject) == ("shop", "production", "checkout")
    assert secret not in repr(vars(event))


def test_members_create_tokens_of_their_project(api):
    url = "/api/admin/projects/shop/api-tokens"
    body = {"tokenName": "mine", "type": "frontend", "environment": "development"}
    for name in ("owner", "member", "admin", "admin_token"):
        response = api[name].post(url, body)
        assert response.status_code == 201
        assert response.json()["projects"] == ["shop"]


def test_project_tokens_for_more_than_the_project(api):
    url = "/api/admin/projects/shop/api-tokens"
    body = {"tokenName": "mine", "type": "frontend", "environment": "development"}
    for projects in (["default"], ["shop", "default"], ["*"], []):
        check_problem(api["admin"].post(url, body | {"projects": projects}), "projects")
    check_problem(api["admin"].post(url, {"tokenName": "x", "type": "admin"}), "type")
