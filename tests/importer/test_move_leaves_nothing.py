"""Everything that the recorded Unleash had comes with a move, or is named, with the reason.

Each table, each column and each member of an answer is in one of the lists below. One that a newer recording adds is in
none, so that somebody has to decide.
"""

import gzip
import json
import re
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from importer.moving.reading.read import MOVED, STAYS
from tests.support.paths import ROOT

RECORDING = json.loads(gzip.decompress((ROOT / "tests" / "vectors" / "moving.json.gz").read_bytes()))
PARTS = re.compile(r"/(projects|features|environments|applications)/(?!project\b)[^/]+")

COLUMNS_MOVED = """
addons: id provider description parameters events projects environments
api_token_project: secret project
api_tokens: secret username type expires_at seen_at environment alias token_name
client_metrics_env: feature_name app_name environment timestamp yes no
client_metrics_env_variants: feature_name app_name environment timestamp variant count
context_fields: name description sort_order legal_values stickiness project
dependent_features: parent child enabled variants
environments: name sort_order type enabled
events: id created_at type created_by data project environment feature_name pre_data
feature_environments: environment feature_name enabled variants
feature_lifecycles: feature stage created_at status status_value
feature_link: feature_name url title
feature_strategies: feature_name project_name environment strategy_name parameters constraints sort_order title
    disabled variants
feature_strategy_segment: feature_strategy_id segment_id
feature_tag: feature_name tag_type tag_value
feature_types: id lifetime_days
features: created_at name description variants type stale project impression_data archived_at archived
last_seen_at_metrics: feature_name environment last_seen_at
milestone_strategies: milestone_id sort_order title strategy_name parameters constraints variants
milestones: id name sort_order release_plan_definition_id started_at
project_environments: project_id environment_name default_strategy
project_settings: project default_stickiness feature_limit feature_naming_pattern feature_naming_example
    feature_naming_description link_templates
projects: id name description
release_plan_definitions: id discriminator name description archived_at project feature_name environment active_milestone_id
    release_plan_template_id
role_permission: role_id environment permission
role_user: role_id user_id project
roles: name description type
segments: name description constraints segment_project_id
strategies: name description parameters deprecated title
tag_types: name description icon color
tags: type value
users: name username email password_hash seen_at is_service
"""
COLUMNS_LEFT = {
    "new here: ids": "feature_link.id feature_strategies.id "
    "milestone_strategies.id role_permission.id roles.id segments.id users.id",
    "the report says that dates of other things than flags are new": "addons.created_at api_tokens.created_at context_fields.created_at "
    "context_fields.updated_at environments.created_at feature_strategies.created_at feature_tag.created_at "
    "feature_strategy_segment.created_at feature_types.created_at projects.created_at projects.updated_at "
    "release_plan_definitions.created_at role_permission.created_at role_user.created_at roles.created_at "
    "roles.updated_at segments.created_at strategies.created_at tag_types.created_at tags.created_at users.created_at "
    "users.updated_at users.first_seen_at",
    "the history of the source says who": "api_tokens.created_by_user_id events.created_by_user_id events.ip "
    "feature_strategies.created_by_user_id feature_tag.created_by_user_id feature_types.created_by_user_id "
    "features.created_by_user_id release_plan_definitions.created_by_user_id role_permission.created_by_user_id "
    "role_user.created_by_user_id roles.created_by_user_id segments.created_by users.created_by_user_id",
    "follows from others": "feature_environments.last_seen_at feature_link.domain features.last_seen_at "
    "features.potentially_stale projects.health users.email_hash",
    "bookkeeping of the server": "events.announced events.tags events.group_type events.group_id "
    "users.login_attempts users.is_system users.deleted_at users.permissions users.settings",
    "built in, or in an order of their own": "feature_types.name feature_types.description strategies.built_in "
    "strategies.display_name strategies.sort_order",
    "the report says that they come switched off": "addons.enabled",
    "the report names each": "project_settings.project_mode "
    "environments.required_approvals projects.archived_at",
    "strategies of an active milestone are found by what they do": "feature_strategies.milestone_id",
    "strategies of milestones are never disabled": "milestone_strategies.disabled",
    "only keeps it from being deleted": "environments.protected",
    "the report says that SCIM ids and pictures are new": "users.scim_id users.scim_external_id users.image_url",
    "of the vendor's accounts": "users.seat_type users.company_role users.product_updates_email_consent",
}

ANSWERS_MOVED = """
/addons: addons addons.description addons.environments addons.events addons.id addons.parameters addons.projects
    addons.provider
/api-tokens: tokens tokens.alias tokens.environment tokens.expiresAt tokens.projects tokens.secret tokens.secure
    tokens.tokenName tokens.type
/context: description legalValues legalValues.description legalValues.value name sortOrder stickiness
/environments: environments environments.enabled environments.name environments.requiredApprovals
    environments.sortOrder environments.type
/feature-types: types types.id types.lifetimeDays
/features-batch/export: dependencies dependencies.dependencies dependencies.dependencies.enabled
    dependencies.dependencies.feature dependencies.dependencies.variants dependencies.feature featureEnvironments
    featureEnvironments.enabled featureEnvironments.environment featureEnvironments.featureName featureEnvironments.name
    featureEnvironments.variants featureStrategies featureStrategies.constraints
    featureStrategies.constraints.caseInsensitive featureStrategies.constraints.contextName
    featureStrategies.constraints.inverted featureStrategies.constraints.operator featureStrategies.constraints.value
    featureStrategies.constraints.values featureStrategies.disabled featureStrategies.featureName featureStrategies.id
    featureStrategies.name featureStrategies.parameters featureStrategies.segments featureStrategies.title
    featureStrategies.variants featureStrategies.variants.name featureStrategies.variants.payload
    featureStrategies.variants.payload.type featureStrategies.variants.payload.value
    featureStrategies.variants.stickiness featureStrategies.variants.weight featureStrategies.variants.weightType
    featureTags featureTags.featureName featureTags.tagType featureTags.tagValue features features.archived
    features.description features.impressionData features.name features.project features.stale features.type links
    links.feature links.links links.links.title links.links.url segments segments.id segments.name
/projects: projects projects.id
/projects/X/context: description legalValues name project sortOrder stickiness
/projects/X/features: features features.createdAt features.environments features.environments.enabled
    features.environments.lastSeenAt features.environments.name features.environments.sortOrder
    features.environments.type features.environments.variantCount features.name
/projects/X/features/X: environments environments.strategies environments.strategies.id
    environments.strategies.sortOrder
/projects/X/overview: defaultStickiness description environments environments.defaultStrategy
    environments.defaultStrategy.constraints environments.defaultStrategy.constraints.contextName
    environments.defaultStrategy.constraints.operator environments.defaultStrategy.constraints.values
    environments.defaultStrategy.name environments.defaultStrategy.parameters environments.defaultStrategy.segments
    environments.environment featureLimit featureNaming featureNaming.description featureNaming.example
    featureNaming.pattern linkTemplates mode name
/search/features: features features.archivedAt features.createdAt features.environments features.environments.enabled
    features.environments.lastSeenAt features.environments.name features.environments.sortOrder
    features.environments.type features.environments.variantCount features.name total
/segments: segments segments.constraints segments.constraints.caseInsensitive segments.constraints.contextName
    segments.constraints.inverted segments.constraints.operator segments.constraints.value segments.constraints.values
    segments.description segments.id segments.name segments.project
/strategies: strategies strategies.deprecated strategies.description strategies.editable strategies.name
    strategies.parameters strategies.title
/tag-types: tagTypes tagTypes.color tagTypes.description tagTypes.icon tagTypes.name
/tags: tags tags.type tags.value
/user-admin: users users.email users.id users.name users.rootRole users.username
"""
ANSWERS_LEFT = {
    "counted, or derived from others": "totalEvents|version|health|technicalDebt|stats|.*\\.?favorite|members|"
    "featureTypeCounts|updatedAt|projects\\.(?!id$).*|.*usedIn\\w+|.*apiTokenCount|.*enabledToggleCount|"
    ".*projectCount|onboardingStatus|children|collaborators|.*\\.has(Enabled)?Strategies|.*\\.(yes|no)|"
    ".*changeRequestIds|.*dependencyType|features\\.segments|environments\\.lastSeenAt",
    "exports have it": "(features\\.)?(impressionData|description|project|stale|type|tags|archived|links|dependencies|"
    "name)|environments\\.(enabled|name|sortOrder|type)|environments\\.strategies\\..*",
    "the list of all has it": "contextFields|tagTypes|createdAt|rootRoles",
    "the report says so": "addons\\.(enabled|createdAt)|providers|(features\\.)?(createdBy|lifecycle)|"
    "(users|segments|tokens)\\.createdAt|.*seenAt|links\\.links\\.id|environments\\.protected|segments\\.createdBy|"
    "users\\.(scimId|imageUrl|inviteLink|loginAttempts|seatType|companyRole|productUpdatesEmailConsent|accountType)|"
    "tokens\\.project|types\\.(description|name)|strategies\\.displayName",
}
PATHS_LEFT = {
    "derived from others": "/projects/X/(dependencies|dora|health-report|insights|status) "
    "/instance-admin/statistics /metrics/applications(/.*)? /projects/X/applications",
    "in other answers too": "/environments/.* /projects/X/environments/.* /projects/X/api-tokens /projects/X "
    "/features/X/tags /user-admin/access /search/events",
    "the history of the source, with --database": "/events",
    "settings of the server, which the report names": "/ui-config",
}


def read_lists(text: str) -> dict[str, set[str]]:
    lists, name = defaultdict(set), ""
    for line in text.split("\n"):
        if line and not line.startswith(" "):
            name, _, line = line.partition(": ")
        lists[name].update(line.split())
    return lists


def test_every_table_comes_is_named_or_stays_for_a_reason():
    assert not RECORDING["tables"].keys() - MOVED - STAYS.keys()
    assert not MOVED & STAYS.keys()


def test_every_column_comes_or_stays_for_a_reason():
    left = {name for names in COLUMNS_LEFT.values() for name in names.split()}
    moved = {
        f"{table}.{column}" for table, columns in read_lists(COLUMNS_MOVED).items() for column in columns
    }
    recorded = {
        f"{table}.{column['column']}"
        for table, content in RECORDING["tables"].items()
        if table in MOVED
        for column in content["columns"]
    }
    assert recorded - moved - left == set()
    assert (moved | left) - recorded == set()
    assert moved & left == set()


def test_every_member_of_an_answer_comes_or_stays_for_a_reason():
    moved = read_lists(ANSWERS_MOVED)
    left = re.compile("|".join(f"(?:{names})(?:\\..*)?" for names in ANSWERS_LEFT.values()))
    skipped = re.compile("|".join(path for paths in PATHS_LEFT.values() for path in paths.split()))
    unknown = {
        f"{path}: {member}"
        for path, members in recorded_members().items()
        if not skipped.fullmatch(path)
        for member in members - moved.get(path, set())
        if not left.fullmatch(member)
    }
    assert unknown == set()
    recorded = recorded_members()
    assert {f"{path}: {m}" for path, members in moved.items() for m in members - recorded[path]} == set()


def recorded_members() -> dict[str, set[str]]:
    """By path, without names of things in it."""
    members = defaultdict(set)
    for request in RECORDING["requests"]:
        path = request["path"].partition("?")[0]
        if request["token"] == "admin" and request["status"] == 200 and path.startswith("/api/admin"):
            named = PARTS.sub(r"/\1/X", path.removeprefix("/api/admin"))
            members[named].update(walk(request["answer"], ""))
    return members


def walk(value: Any, place: str) -> Iterator[str]:
    for each in value if isinstance(value, list) else [value]:
        for member, inner in each.items() if isinstance(each, dict) else ():
            path = f"{place}.{member}" if place else member
            yield path
            if member != "parameters":
                yield from walk(inner, path)
