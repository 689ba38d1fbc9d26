"""`manage.py move --database`: what the API of Unleash hides, from its recorded tables."""

import gzip
import hashlib
import json
from base64 import urlsafe_b64encode
from copy import deepcopy
from typing import Any

import psycopg
import pytest
from django.core.management import call_command
from django.test import override_settings
from django.utils import timezone
from psycopg import sql

import flagadmin.settings
from flagadmin.core.audit.models import AuditEvent
from groups.access import Caller
from groups.login.passwords import CuttingBcryptHasher
from groups.models import ApiToken, Grant, Group, Role, User
from groups.permissions import BuiltIn
from importer.apply.undo import undo_import
from importer.models import ImportRun, SourceEvent
from importer.moving.reading import source
from importer.moving.reading.read import STAYS
from integrations.models import Integration
from projects.members.actions import Holders, add_roles, remove_role
from projects.models import (
    Application,
    FavoriteFlag,
    Flag,
    FlagEnvironment,
    FlagLastSeen,
    LifecycleStage,
    Project,
    Segment,
    Strategy,
    UsageDay,
    UsageHour,
)
from releases.models import ReleasePlan, ReleaseTemplate
from releases.plans.actions import start_milestone
from releases.plans.due import has_own_strategies
from releases.plans.queries import FlagPath
from tests.support.demo import made_once
from tests.support.moving import run_step
from tests.support.paths import ROOT
from tests.support.recorded_database import loaded
from tests.support.recorded_unleash import ADMIN, replayed

pytestmark = pytest.mark.django_db
RECORDING = json.loads(gzip.decompress((ROOT / "tests" / "vectors" / "moving.json.gz").read_bytes()))
QUICK = "django.contrib.auth.hashers.MD5PasswordHasher"
PASSWORD = RECORDING["password of people"]
IDENTIFIER = "web:production.v2_AbCdEfGhIjKlMnOpQrStUv"
SECRET = f"{IDENTIFIER}_{'s' * 43}"
SELECTOR = "Zy9-wVuTsRqPoNmLkJiHg1"
NEW_KIND = f"[]:production.v2_{SELECTOR}_{'t' * 43}"
MORE = """
INSERT INTO roles (id, name, description, type) VALUES
    (7, 'Releaser', 'switches', 'custom'), (8, 'Auditor', '', 'root-custom');
INSERT INTO role_permission (id, role_id, permission, environment) VALUES
    (900, 7, 'UPDATE_FEATURE_ENVIRONMENT', 'production'), (901, 7, 'UPDATE_FEATURE', NULL),
    (902, 7, 'FLY', NULL), (903, 8, 'READ_LOGS', NULL);
INSERT INTO users (id, name, username, email, is_service, is_system, updated_at) VALUES
    (6, 'Robot', 'robot', NULL, true, false, now()), (7, 'Odd', 'odd', 'no email', false, false, now()),
    (8, 'Nobody', NULL, NULL, false, false, now());
INSERT INTO role_user (role_id, user_id, project) VALUES (7, 3, 'web'), (4, 4, 'mobile'), (8, 6, 'default');
INSERT INTO groups VALUES (1, 'Web team', 'they', '["web-team"]', NULL);
INSERT INTO group_user VALUES (1, 3), (1, 4);
INSERT INTO group_role VALUES (1, 5, 'web');
INSERT INTO favorite_features VALUES ('base-export-a', 3);
INSERT INTO personal_access_tokens VALUES ('user:0123456789abcdef0123456789', 'ci', 3, NULL, NULL);
INSERT INTO client_metrics_env_daily VALUES ('base-export-a', 'web-shop', 'production', now()::date - 9, 7, 5);
INSERT INTO client_metrics_env_variants_daily VALUES
    ('base-export-a', 'web-shop', 'production', now()::date - 9, 'a', 3);
INSERT INTO events (id, created_at, type, created_by, project, feature_name, data, announced) VALUES
    (900, now(), 'feature-updated', 'ann', 'web', 'web.banner-a', '{"a": "\\u0000 \\\\u0000"}', true);
CREATE TABLE login_history (id int);
CREATE TABLE api_tokens_v2 (selector text, verifier text);
INSERT INTO login_history VALUES (1);
INSERT INTO release_plan_definitions
    (id, discriminator, name, feature_name, environment, created_by_user_id, created_at, active_milestone_id,
     release_plan_template_id)
VALUES ('01', 'plan', 'Slowly', 'base-export-a', 'production', 1, now(), 'm1', '01KC6TD3HASJWRPMKT1ACY8M3A'),
    ('02', 'plan', 'Otherwise', 'base-banner-b', 'production', 1, now(), 'm3', NULL),
    ('03', 'plan', 'Later', 'base-export-a', 'development', 1, now(), NULL, NULL);
INSERT INTO milestones (id, name, sort_order, release_plan_definition_id, started_at) VALUES
    ('m1', 'All', 0, '01', '2026-11-20T10:00:00Z'), ('m2', 'Some', 1, '01', NULL), ('m3', 'None', 0, '02', now()),
    ('m4', 'First', 0, '03', NULL);
INSERT INTO milestone_strategies (id, milestone_id, sort_order, title, strategy_name, parameters, constraints, variants)
SELECT 's' || name, 'm' || name, 0, '', 'flexibleRollout',
       jsonb_build_object('groupId', 'base-export-a', 'rollout', rollout, 'stickiness', 'default'), '[]', '[]'
  FROM (VALUES ('1', '100'), ('2', '5'), ('3', '7'), ('4', '3')) AS of_plans (name, rollout);
CREATE TABLE milestone_strategy_segments (milestone_strategy_id text, segment_id int);
INSERT INTO milestone_strategy_segments
SELECT id, (SELECT min(id) FROM segments WHERE segment_project_id IS NULL) FROM milestone_strategies
 WHERE id IN ('s2', '01KC6VJDDYAYBRCZT92YFF1H5Q');
INSERT INTO last_seen_at_metrics VALUES ('base-export-a', 'production', now() - interval '1 day');
"""


def make_verifier(secret: str) -> str:
    return urlsafe_b64encode(hashlib.sha256(secret.encode()).digest()).decode().rstrip("=")


@pytest.fixture(scope="module")
def database(django_db_setup):
    with loaded(RECORDING["tables"]) as (url, connection):
        connection.execute(MORE)
        verifier = make_verifier(SECRET)
        connection.execute(
            "INSERT INTO api_tokens_v2 VALUES (%s, %s), ('gone', 'x')", [SELECTOR, make_verifier(NEW_KIND)]
        )
        connection.execute(
            "INSERT INTO api_tokens (secret, verifier, username, token_name, type, environment) "
            "VALUES (%s, %s, 'safe', 'safe', 'client', 'production')",
            [IDENTIFIER, verifier],
        )
        yield url


def recording():
    """With two tokens whose secrets the API does not tell."""
    changed = {**RECORDING, "requests": [{**each} for each in RECORDING["requests"]]}
    for request in changed["requests"]:
        if request["path"] == "/api/admin/api-tokens":
            safe = {
                "secret": IDENTIFIER,
                "tokenName": "safe",
                "type": "client",
                "environment": "production",
                "projects": ["web"],
                "secure": True,
            }
            new = safe | {"secret": NEW_KIND[:-44], "tokenName": "new", "projects": ["web", "mobile"]}
            request["answer"] = {"tokens": [*request["answer"]["tokens"], safe, new]}
    return changed


@pytest.fixture(scope="module")
def replay():
    with replayed(recording()) as replay:
        yield replay


@pytest.fixture
def unleash(replay, monkeypatch):
    monkeypatch.setattr(source, "WAIT", 0)
    replay.load(recording())
    return replay


@pytest.fixture
def run(capsys, unleash):
    return lambda step, *options: run_step(step, unleash.address, capsys, *options)


def test_moves_what_the_api_hides_once(run, database):
    before = AuditEvent.objects.count()
    hidden = "cannot   token new: its secret is not readable there"
    assert hidden in run("plan")[1]
    status, text = run("plan", "--database", database)
    assert (status, AuditEvent.objects.count(), SourceEvent.objects.count()) == (2, before, 0), text
    status, applied = run("apply", "--database", database)
    assert (status, applied) == (0, text.replace("Nothing was written.\n", ""))
    assert "cannot   person no email: no email is not an email address." in text
    assert hidden not in text
    assert "create   token new: " in text
    assert "cannot   1 token of the new kind: in its database alone" in text
    assert "create   release plan Slowly of base-export-a in production" in text
    assert "cannot   person 8: Enter a user name or an email address." in text
    assert "permissions of role Releaser: are unknown here: FLY" in text
    assert "create   release template Unleash Release Template" in text
    for table in STAYS.keys() & RECORDING["tables"].keys():
        assert f"note     table {table} stays there: {len(RECORDING['tables'][table]['rows'])} rows: " in text
    assert "note     table login_history stays there: 1 rows: unknown here" in text
    message = "base-banner-b does not have the strategies of the active milestone"
    assert f"cannot   release plan Otherwise of base-banner-b in production: {message}" in text
    status, text = run("plan", "--database", database)
    assert status == 0, text

    maria = User.objects.get(email="maria@example.com")
    assert ApiToken.objects.get(user=maria, kind="personal").name == "ci"
    assert FavoriteFlag.objects.get(user=maria).flag.name == "base-export-a"
    assert ApiToken.objects.get(name="safe").secret_hash == hashlib.sha256(SECRET.encode()).hexdigest()
    assert ApiToken.objects.get(name="safe").prefix == IDENTIFIER
    assert User.objects.get(username="robot").root_role.name == "Auditor"
    group = Group.objects.get(name="Web team")
    assert (group.member_ids(), group.mappings_sso) == (
        {maria.pk, User.objects.get(email="lukas@example.com").pk},
        ["web-team"],
    )
    assert {
        (str(each.role), each.project_id, str(each.user or each.group)) for each in Grant.objects.all()
    } == {
        ("Releaser", "web", "maria@example.com"),
        ("Owner", "mobile", "lukas@example.com"),
        ("Member", "web", "Web team"),
    }
    role = Role.objects.get(name="Releaser")
    assert [each["name"] for each in role.document()["permissions"]] == [
        "UPDATE_FEATURE",
        "UPDATE_FEATURE_ENVIRONMENT",
    ]


def test_variants_that_exports_leave_out_come_from_the_database(run, database, unleash):
    name = "base-export-a"
    unleash._exports, unleash._answers = deepcopy((unleash._exports, unleash._answers))
    for export in unleash._exports["development"]:
        kept = [each for each in export["featureEnvironments"] if each["featureName"] != name]
        export["featureEnvironments"] = kept
    for (_, path), (_, answer) in unleash._answers.items():
        if path == "/api/admin/projects/default/features":
            [flag] = [each for each in answer["features"] if each["name"] == name]
            [used] = [each for each in flag["environments"] if each["name"] == "development"]
            used["variantCount"] = 2
    subject = f"variants of flag {name} in development"
    variants = [
        {"name": name, "weight": 500, "weightType": "variable", "stickiness": "userId", "payload": None}
        for name in ("a", "b")
    ]
    with psycopg.connect(database) as connection:
        connection.execute(
            "UPDATE feature_environments SET variants = %s WHERE feature_name = %s AND environment = 'development'",
            [json.dumps(variants), name],
        )
    assert f"cannot   {subject}: its export leaves them out: move with --database" in run("plan")[1]
    status, text = run("apply", "--database", database)
    assert (status, subject in text) == (0, False), text
    stored = FlagEnvironment.objects.get(flag__name=name, environment="development").variants
    assert [(each["name"], each["weight"], each["stickiness"]) for each in stored] == [
        ("a", 500, "userId"),
        ("b", 500, "userId"),
    ]


def test_a_flag_that_is_left_out_leaves_no_traces_in_another_of_its_name(run, database):
    Project.objects.create(id="mine", name="mine")
    flag = Flag.objects.create(name="base-export-a", project_id="mine", created_at=timezone.now())
    LifecycleStage.objects.filter(flag=flag).delete()
    status, text = run("apply", "--database", database, "--leave-out", "base-export-a")
    assert status == 0, text
    assert Flag.objects.get(pk=flag.pk).created_at == flag.created_at
    assert Application.objects.filter(name="web-shop").exists()
    for table in (FavoriteFlag, FlagLastSeen, LifecycleStage, UsageDay, UsageHour):
        assert not table.objects.filter(flag_id=flag.pk).exists(), table


@override_settings(PASSWORD_HASHERS=[QUICK, flagadmin.settings.PASSWORD_HASHERS[1]])
def test_passwords_and_integrations_come_later_once(run, database, client):
    """Passwords are hashed anew at the next login, and integrations come switched off."""
    subject = "integration 1 (webhook, to chat)"
    status, text = run("apply")
    assert f"cannot   {subject}: its secrets are not readable: move with --database" in text
    maria = User.objects.get(email="maria@example.com")
    assert not maria.has_usable_password()
    status, text = run("apply", "--database", database)
    assert (status, f"create   {subject}: comes switched off" in text) == (0, True), text
    assert "change   person maria@example.com: password none → the same as there" in text
    [integration] = Integration.objects.all()
    assert (integration.enabled, integration.provider, integration.projects) == (False, "webhook", ["web"])
    assert integration.environments == ["production"]
    assert integration.secrets()["parameters"] == {
        "url": "https://hooks.example.com/x",
        "authorization": "s3cret",
    }
    assert "s3cret" not in text
    maria.refresh_from_db()
    assert maria.password.startswith("bcrypt$$2b$10$")
    for password, status in ((f"{PASSWORD}x", 401), (PASSWORD, 200), (PASSWORD, 200)):
        answer = client.post(
            "/auth/simple/login",
            {"username": maria.email, "password": password},
            content_type="application/json",
        )
        assert answer.status_code == status
    maria.refresh_from_db()
    assert maria.password.startswith("md5$")
    integration.delete()
    assert run("plan", "--database", database)[0] == 0


def test_only_the_first_72_bytes_of_a_password_count_in_bcrypt():
    hasher = CuttingBcryptHasher()
    encoded = hasher.encode("é" * 50, "$2b$04$abcdefghijklmnopqrstuu")
    assert hasher.verify("é" * 36, encoded)
    assert not hasher.verify("é" * 35, encoded)


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("nonsense", "--database is no URL like postgres://user:password@host/database."),
        ("postgres://u:s3cret@127.0.0.1:1/x", "cannot be reached"),
        ("", "is no database of Unleash: tables are missing."),  # our own
    ],
)
def test_databases_that_are_none(url, message, run, database):
    before = AuditEvent.objects.count()
    url = url or database.replace("_unleash?", "?")
    status, text = run("apply", "--database", url)
    assert (status, message in text, "s3cret" in text) == (1, True, False), text
    assert AuditEvent.objects.count() == before


def test_nothing_is_written_to_the_other_database(run, database):
    before = read_contents(database)
    run("plan", "--project", "default", "--database", database)
    assert read_contents(database) == before


def read_contents(database: str) -> dict[str, Any]:
    """The number of rows of each table, and a hash of what is in them."""
    with psycopg.connect(database) as connection:
        tables = connection.execute("SELECT relname FROM pg_stat_user_tables").fetchall()
        rows = sql.SQL("SELECT count(*), sum(hashtext(row::text)) FROM {} AS row")
        return {
            table: connection.execute(rows.format(sql.Identifier(table))).fetchone() for (table,) in tables
        }


@pytest.fixture(scope="module")
def moved(database, replay, django_db_blocker):
    """All has moved here, for the tests from here on: what is undone at the end of the module."""
    command = ("move", "apply", "--from", replay.address, "--token", ADMIN, "--database", database)
    replay.load(recording())
    with made_once(lambda: call_command(*command), django_db_blocker):
        yield


def test_access_that_was_edited_in_one_project_is_no_conflict_in_another(run, database, moved):
    lukas = User.objects.get(email="lukas@example.com")
    add_roles("web", [Holders("user", (lukas.pk,))], [BuiltIn.MEMBER], caller=Caller.system())
    Grant.objects.filter(user=lukas, project="mobile").delete()  # as if it had been given there since
    status, text = run("apply", "--database", database)
    assert (status, "create   access of lukas@example.com to project mobile: Owner" in text) == (0, True), (
        text
    )
    remove_role("mobile", Holders("user", (lukas.pk,)), BuiltIn.OWNER, caller=Caller.system())
    status, text = run("plan", "--database", database)
    assert (status, "conflict access of lukas@example.com to project mobile: was edited" in text) == (2, True)


def test_release_plans_come_with_their_milestones_and_templates_with_their_segments(run, database, moved):
    shared = Segment.objects.filter(project=None).order_by("pk")
    template = ReleaseTemplate.objects.get(name="Unleash Release Template")
    used = [each.strategies[0]["segments"] for each in template.milestones.all()]
    assert (len(used[0]), used[1:]) == (1, [[], [], []])
    assert Segment.objects.get(pk=used[0][0]) in shared
    plan = ReleasePlan.objects.get(name="Slowly")
    assert (plan.pk, plan.state, plan.active.name, plan.template_key) == ("01", "running", "All", template.pk)
    assert plan.since.isoformat() == "2026-11-20T10:00:00+00:00"
    strategy = Strategy.objects.get(flag__name="base-export-a", environment="production")
    assert plan.strategy_ids == [str(strategy.pk)]
    assert has_own_strategies(plan)
    assert plan.milestones.last().strategies[0]["segments"] == used[0]
    assert (ReleasePlan.objects.get(name="Later").state, ReleasePlan.objects.count()) == ("planned", 2)
    # It goes on here as any other plan.
    place = FlagPath(plan.flag.project_id, "base-export-a", "production")
    start_milestone(place, plan.pk, "m2", caller=Caller.system())
    strategy.refresh_from_db()
    assert strategy.parameters["rollout"] == "5"
    status, text = run("apply", "--database", database)
    assert (
        status,
        "conflict release plan Slowly of base-export-a in production: was edited here" in text,
    ) == (
        2,
        True,
    ), text
    assert ReleasePlan.objects.get(pk="01").active.name == "Some"


def test_dates_usage_and_history_come_too(moved):
    flag = Flag.objects.get(name="base-export-a")
    run_of_flag = ImportRun.objects.filter(project="web").latest("created_at")
    assert (run_of_flag.created_at - flag.created_at).days >= 364
    assert FlagLastSeen.objects.filter(flag=flag, environment="production").exists()
    assert LifecycleStage.objects.filter(flag=flag).count() >= 2
    assert {*Application.objects.values_list("name", flat=True)} == {"ios", "web-shop"}
    assert UsageHour.objects.count() == 16
    day = UsageDay.objects.get()
    assert (day.flag_id, day.yes, day.no, day.variants) == (flag.pk, 7, 5, {"a": 3})
    assert SourceEvent.objects.count() == 527
    assert SourceEvent.objects.get(event_id=900).after == {"a": "� \\u0000"}
    # Dates do not keep an import from being undone.
    undo_import(
        ImportRun.objects.filter(project="old-portal").latest("created_at").id, caller=Caller.system()
    )


def test_tokens_of_the_new_kind_work_as_before(moved, client):
    token = ApiToken.objects.get(name="new")
    assert (token.prefix, token.projects.count()) == (NEW_KIND[:-44], 2)
    assert client.get("/api/client/features", headers={"Authorization": NEW_KIND}).status_code == 200
