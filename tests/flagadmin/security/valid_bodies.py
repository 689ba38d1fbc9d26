"""A valid body for every operation that takes one, as full as it can be; the world they are valid in is ``world.py``."""

from typing import Any

from groups.permissions import BuiltIn
from tests.flagadmin.security.routes import Route
from tests.flagadmin.security.world import body_for
from tests.support.signals import make_alert, make_body

VARIANT = {
    "name": "blue", "weight": 1000, "weightType": "variable", "stickiness": "default",
    "payload": {"type": "string", "value": "#00f"},
}  # fmt: skip
FLAG_VARIANT = VARIANT | {"overrides": [{"contextName": "userId", "values": ["7"]}]}
CONSTRAINTS = [
    {
        "contextName": "country", "operator": "IN", "values": ["NO", "DE"],
        "inverted": False, "caseInsensitive": False,
    },
    {"contextName": "age", "operator": "NUM_GT", "value": "17"},
]  # fmt: skip
STRATEGY = {
    "name": "flexibleRollout",
    "title": "Half",
    "disabled": False,
    "sortOrder": 1,
    "parameters": {"rollout": "50", "stickiness": "userId", "groupId": "cart"},
    "constraints": CONSTRAINTS,
    "variants": [VARIANT],
    "segments": ["<segment>"],
}
CONTEXT_FIELD = {
    "description": "d",
    "stickiness": True,
    "sortOrder": 3,
    "legalValues": [{"value": "gold", "description": "d"}, {"value": "blue"}],
}
LEGAL_VALUE = {"value": "blue", "description": "d"}
NAMES = {"features": ["cart", "checkout"]}
TAGS = {
    "addedTags": [{"type": "team", "value": "blue"}],
    "removedTags": [{"type": "team", "value": "green"}],
}
PROJECT = {
    "name": "Shop",
    "description": "d",
    "mode": "open",
    "defaultStickiness": "default",
    "featureLimit": 100,
    "featureNaming": {"pattern": "[a-z-]+", "example": "a-b", "description": "d"},
}
TOKEN = {
    "tokenName": "t", "type": "backend", "environment": "production", "projects": ["shop"],
    "expiresAt": "2099-01-01T00:00:00Z", "alias": "a",
}  # fmt: skip
PATCH = [{"op": "test", "path": "/name", "value": "cart"}, {"op": "replace", "path": "/stale", "value": True}]
ROLE = {
    "name": "Switcher", "description": "d", "type": "custom",
    "permissions": [{"name": "UPDATE_FEATURE_ENVIRONMENT", "environment": "production"}],
}  # fmt: skip
STEP = STRATEGY | {"strategyName": "flexibleRollout"}
TRANSITION = {
    "intervalMinutes": 60,
    "window": {"zone": "Europe/Oslo", "days": [1, 2], "from": "09:00", "to": "16:00"},
}
MILESTONE = {"name": "Some", "sortOrder": 0, "strategies": [STEP], "transitionCondition": TRANSITION}
TEMPLATE = {"name": "Slow", "description": "d", "milestones": [MILESTONE]}
SAFEGUARD = {
    "title": "Errors",
    "impactMetric": {
        "metricName": "errors", "timeRange": "hour", "aggregationMode": "rps", "source": "internal",
        "labelSelectors": {"appName": ["web"]}, "comparesWithout": True,
    },
    "triggerCondition": {"operator": ">", "threshold": 1.5},
    "action": {"type": "pause"},
}  # fmt: skip
CHART = {
    "metricName": "errors", "timeRange": "day", "aggregationMode": "p95", "yAxisMin": "zero",
    "labelSelectors": {"appName": ["web"]}, "title": "Errors",
}  # fmt: skip
EXPECTED = [{"flag": "cart", "environment": "production", "enabled": True, "variant": "blue"}]
SAVED_CONTEXT = {
    "name": "Bea",
    "context": {"userId": "42", "properties": {"plan": "pro"}},
    "note": "d",
    "expectations": EXPECTED,
}
SEGMENT = {"name": "adults", "description": "d", "constraints": CONSTRAINTS, "project": "shop"}
PROPOSED = {
    "feature": "cart",
    "action": "addStrategy",
    "payload": {
        "name": "default",
        "title": "t",
        "constraints": CONSTRAINTS,
        "parameters": {},
        "sortOrder": 1,
    },
}
STRATEGY_TYPE = {
    "description": "d",
    "parameters": [{"name": "hosts", "type": "list", "description": "d", "required": True}],
}
INTEGRATION = {
    "provider": "webhook",
    "description": "Ours",
    "enabled": True,
    "parameters": {"url": "https://receiver.example.org/hook"},
    "events": ["feature-created"],
    "projects": ["shop"],
    "environments": ["production"],
}
SIGNAL_RULE = {
    "name": "Payments fail",
    "match": {"labels.alertname": "PaymentErrors"},
    "project": "shop",
    "flag": "cart",
    "environment": "production",
    "then": "turnOff",
    "enabled": True,
}
TAG_TYPE = {"description": "d", "icon": "i", "color": "#00AAFF"}
GROUP = {
    "name": "Checkout", "description": "d", "rootRole": BuiltIn.VIEWER, "mappingsSSO": ["elsewhere"],
    "users": [{"user": {"id": "<person>"}}],
}  # fmt: skip
PERSON = {"name": "Ida", "email": "ida@example.org", "rootRole": BuiltIn.VIEWER}
ACCESS = {"roles": [BuiltIn.MEMBER], "users": ["<person>"], "groups": ["<group>"]}
PASSWORD = {"password": "a long word to enter by"}
PERSONAL_TOKEN = {"description": "nightly", "expiresAt": "2099-01-01T00:00:00Z"}
QUESTION = {
    "projects": ["shop"],
    "context": {
        "userId": "7", "sessionId": "s", "remoteAddress": "10.0.0.1", "appName": "web",
        "currentTime": "2026-11-21T09:00:00Z", "properties": {"country": "NO"},
    },
}  # fmt: skip
REGISTRATION = {
    "appName": "web", "instanceId": "web-1", "sdkVersion": "unleash-node-sdk:6.12.1", "strategies": ["default"],
    "started": "2026-11-21T03:26:33.451Z", "interval": 60000, "platformName": "node", "platformVersion": "22",
    "specVersion": "5.2.0", "yggdrasilVersion": "0.14",
}  # fmt: skip
RELAYS = {
    "relays": [
        {"id": "5f0c1e0d2a7b4c55", "region": "eu", "version": "1.3.0", "uptimeSeconds": 86400}
        | {"intervalSeconds": 60, "flagsAgeSeconds": 3, "secondsAgo": 1, "tokens": 12, "clients": 40}
        | {"streams": 3, "batchesWaiting": 0, "faults": ["The data directory cannot be used."]}
    ]
}
METRICS = {
    "appName": "web",
    "instanceId": "web-1",
    "bucket": {
        "start": "2026-11-21T03:26:40.651Z",
        "stop": "2026-11-21T03:27:40.659Z",
        "toggles": {"cart": {"yes": 8, "no": 1, "variants": {"blue": 5}}},
    },
}
BULK = {
    "applications": [
        {"appName": "web", "instanceId": "w", "environment": "production", "sdkType": "backend"}
        | {"strategies": ["default"], "sdkVersion": "x:1.0.0"}
    ],
    "metrics": [
        {"featureName": "cart", "appName": "web", "environment": "production", "yes": 8, "no": 1}
        | {"timestamp": "2026-11-21T03:00:00.000Z", "variants": {"blue": 3}}
    ],
}
AS_CODE: dict[str, Any] = {
    "flags": [
        {
            "project": "shop",
            "flag": {
                "name": "as-code", "type": "release", "description": "Described", "stale": False,
                "impressionData": False, "tags": ["team:green"], "links": [{"url": "https://example.org", "title": "T"}],
                "dependencies": [{"feature": "checkout", "enabled": True}],
                "environments": {
                    "production": {
                        "enabled": False,
                        "strategies": [{"name": "default", "title": "All", "disabled": False, "segments": ["as-code"]}],
                        "variants": [],
                    },
                },
            },
        },
    ],
    "segments": [{"name": "as-code", "description": "", "constraints": []}],
    "contextFields": [{"name": "as-code", "stickiness": True, "sortOrder": 3, "legalValues": [{"value": "a"}]}],
    "archive": [],
    "fingerprint": "",
    "skipChangeRequests": False,
}  # fmt: skip
IMPORT = {
    "project": "shop",
    "environment": "production",
    "data": {
        "features": [{"name": "new", "type": "release", "description": "d", "tags": [], "stale": False}],
        "featureStrategies": [STRATEGY | {"featureName": "new", "segments": [1]}],
        "featureEnvironments": [{"name": "new", "enabled": True, "variants": [FLAG_VARIANT]}],
        "contextFields": [{"name": "country", "legalValues": [{"value": "NO"}, {"value": "DE"}]}],
        "featureTags": [{"featureName": "new", "tagType": "team", "tagValue": "blue"}],
        "segments": [{"id": 1, "name": "vip"}],
        "tagTypes": [{"name": "team", "description": "d", "icon": "i", "color": "#00AAFF"}],
        "dependencies": [{"feature": "new", "dependencies": [{"feature": "checkout", "enabled": True}]}],
        "links": [{"feature": "new", "links": [{"url": "https://example.org", "title": "t"}]}],
    },
}

_ADMIN = "/api/admin"
_PROJECT = f"{_ADMIN}/projects/<str:project_id>"
_FLAG = f"{_PROJECT}/features/<str:name>"
_MILESTONE = "<str:template_id>/milestones/<str:milestone_id>"
_PLACE = f"{_FLAG}/environments/<str:environment>"

VALID: dict[str, Any] = {
    f"post {_ADMIN}/playground": QUESTION | {"environment": "production"},
    f"post {_ADMIN}/playground/change-request/<str:request_id>": {"context": {"userId": "42"}},
    f"post {_ADMIN}/playground/advanced": QUESTION | {"environments": ["production", "development"]},
    f"post {_ADMIN}/playground/check-expectations": {
        "projects": ["shop"], "environments": ["production"], "contexts": [],
        "asIf": {"environment": "production", "draft": {"flag": "cart", "enabled": False}},
    },
    f"post {_ADMIN}/playground/incidents": {
        "environment": "production",
        "from": "2026-01-01T00:00:00Z",
        "to": "2026-01-02T00:00:00Z",
        "affected": "userId\n42\n",
        "others": "userId\n7\n",
    },
    f"post {_ADMIN}/playground/contexts": SAVED_CONTEXT | {"project": "shop"},
    f"put {_ADMIN}/playground/contexts/<str:context_id>": SAVED_CONTEXT,
    f"post {_ADMIN}/playground/compare": {
        "from": {"environment": "production"},
        "to": {
            "environment": "production",
            "draft": {
                "flag": "cart", "enabled": True, "archived": False, "strategies": [STRATEGY], "variants": [FLAG_VARIANT],
                "dependencies": [{"feature": "checkout", "enabled": True, "variants": ["blue"]}], "segments": [],
            },
        },
        "projects": ["shop"],
        "contexts": {"explicit": [{"userId": "42"}], "generated": True, "synthetic": 10, "seed": 1},
        "limit": 5,
    },
    f"post {_ADMIN}/features-batch/import": IMPORT,
    f"post {_ADMIN}/features-batch/validate": IMPORT,
    f"post {_ADMIN}/code-references": {
        "repository": "shop/web", "revision": "4f2a", "link": "https://example.org/{path}",
        "references": [{"flag": "cart", "places": [{"path": "src/cart.ts", "line": 12}]}],
    },
    f"post {_ADMIN}/flags-as-code/plan": AS_CODE,
    f"post {_ADMIN}/flags-as-code/apply": AS_CODE,
    f"post {_ADMIN}/features-batch/compare": IMPORT | {
        "contexts": {
            "explicit": [{"userId": "42"}], "csv": "userId\n7\n", "generated": True, "synthetic": 10, "seed": 1,
            "fixed": {"properties": {"country": "DE"}}, "saved": ["Ada"],
        },
    },
    f"post {_ADMIN}/features-batch/export": {
        "environment": "production", "features": ["cart"], "tag": "green", "project": "shop", "downloadFile": True,
    },
    f"put {_ADMIN}/projects/<str:project_id>": PROJECT,
    f"put {_ADMIN}/groups/<str:groupId>": GROUP,
    f"post {_ADMIN}/groups": GROUP,
    f"post {_ADMIN}/api-tokens": TOKEN,
    f"put {_ADMIN}/api-tokens/<str:token>": {"expiresAt": "2099-01-01T00:00:00Z"},
    f"post {_ADMIN}/context": CONTEXT_FIELD | {"name": "tier", "project": "shop"},
    f"put {_ADMIN}/context/<str:name>": CONTEXT_FIELD,
    f"post {_ADMIN}/context/<str:name>/legal-values": LEGAL_VALUE,
    f"post {_ADMIN}/context/validate": {"name": "tier"},
    f"post {_ADMIN}/environments": {"name": "canary", "type": "test", "enabled": True, "sortOrder": 3},
    f"put {_ADMIN}/environments/sort-order": {"production": 2, "development": 1},
    f"put {_ADMIN}/environments/update/<str:name>": {"type": "test", "enabled": True, "sortOrder": 3},
    f"post {_ADMIN}/environments/validate": {"name": "canary"},
    f"post {_ADMIN}/events/search": {
        "type": "feature-created", "project": "shop", "feature": "cart", "query": "c", "limit": 5, "offset": 1,
    },
    f"post {_ADMIN}/constraints/validate": CONSTRAINTS[0],
    f"put {_ADMIN}/feature-types/<str:type_id>/lifetime": {"lifetimeDays": 50},
    f"post {_ADMIN}/metrics/applications/<text:name>": {
        "description": "d", "url": "https://example.org", "color": "#00AAFF", "icon": "web", "strategies": ["default"],
    },
    f"post {_ADMIN}/features/<str:name>/tags": {"type": "team", "value": "blue"},
    f"put {_ADMIN}/features/<str:name>/tags": TAGS,
    f"post {_ADMIN}/flag-views": {"name": "Mine", "query": "owner=mine&sort=name"},
    f"post {_ADMIN}/features/validate": {"name": "new", "projectId": "shop"},
    f"post {_ADMIN}/projects": PROJECT | {"id": "other", "environments": ["production"]},
    f"post {_ADMIN}/projects/validate": {"id": "other"},
    f"put {_PROJECT}/settings": PROJECT,
    f"post {_PROJECT}/access": ACCESS,
    f"post {_PROJECT}/access/invite": {"who": "new@example.org", "role": BuiltIn.MEMBER, "environments": ["production"]},
    f"put {_PROJECT}/access": {
        "roles": [{"id": BuiltIn.MEMBER, "users": ["<person>"], "groups": ["<group>"]}],
    },
    f"post {_PROJECT}/api-tokens": TOKEN,
    f"post {_PROJECT}/archive": {"features": ["third"]},
    f"post {_PROJECT}/archive/validate": NAMES,
    f"post {_PROJECT}/bulk_features/environments/<str:environment>/on": NAMES,
    f"post {_PROJECT}/bulk_features/environments/<str:environment>/off": NAMES,
    f"post {_PROJECT}/revive": {"features": ["gone"]},
    f"post {_PROJECT}/delete": {"features": ["gone"]},
    f"post {_PROJECT}/stale": NAMES | {"stale": True},
    f"put {_PROJECT}/tags": NAMES | {"tags": TAGS},
    f"post {_PROJECT}/environments/<str:environment>/change-requests": PROPOSED,
    f"put {_PROJECT}/environments/<str:environment>/change-requests/config": {
        "changeRequestsEnabled": True, "requiredApprovals": 2,
    },
    f"put {_PROJECT}/change-requests/<str:request_id>/state": {"state": "Approved"},
    f"put {_PROJECT}/change-requests/<str:request_id>/title": {"title": "Half of them"},
    f"put {_PROJECT}/change-requests/<str:request_id>/approvers": {"reviewers": []},
    f"post {_PROJECT}/change-requests/<str:request_id>/comments": {"text": "Why?"},
    f"put {_PROJECT}/change-requests/<str:request_id>/changes/<str:change_id>": PROPOSED,
    f"post {_ADMIN}/release-plan-templates": TEMPLATE,
    f"put {_ADMIN}/release-plan-templates/<str:template_id>": TEMPLATE,
    f"post {_ADMIN}/release-plan-templates/<str:template_id>/milestones": MILESTONE,
    f"put {_ADMIN}/release-plan-templates/{_MILESTONE}": MILESTONE,
    f"post {_ADMIN}/release-plan-templates/{_MILESTONE}/strategies": STEP,
    f"put {_ADMIN}/release-plan-templates/{_MILESTONE}/strategies/<str:strategy_id>": STEP,
    f"post {_PLACE}/release-plans": {
        "steps": TRANSITION | {
            "strategyId": "<strategy>", "strategy": STRATEGY, "rollouts": [5, 25], "pauseIfExpectationBreaks": True,
        },
    },
    f"put {_PLACE}/progressions/<str:milestone_id>": {"transitionCondition": TRANSITION, "targetMilestone": ""},
    f"post {_PLACE}/progressions/<str:plan_id>/pause": {"reason": "Friday"},
    f"put {_PLACE}/release-plans/<str:plan_id>/safeguards": SAFEGUARD,
    f"post {_FLAG}/impact-metrics/config": CHART,
    f"post {_ADMIN}/impact-metrics/config": CHART,
    f"put {_PLACE}/safeguards": {name: SAFEGUARD[name] for name in ("title", "impactMetric", "triggerCondition")},
    f"put {_PLACE}/release-plans/<str:plan_id>/milestones/<str:milestone_id>/strategies/<str:strategy_id>": {
        member: value for member, value in STRATEGY.items() if member != "sortOrder"
    },
    f"post {_PROJECT}/context": CONTEXT_FIELD | {"name": "tier"},
    f"put {_PROJECT}/context/<str:name>": CONTEXT_FIELD,
    f"post {_PROJECT}/context/<str:name>/legal-values": LEGAL_VALUE,
    f"post {_PROJECT}/context/validate": {"name": "tier"},
    f"post {_PROJECT}/environments": {"environment": "staging", "defaultStrategy": STRATEGY | {"segments": []}},
    f"post {_PROJECT}/environments/<str:name>/default-strategy": STRATEGY,
    f"post {_PROJECT}/environments/promote": {
        "from": "development", "to": "production", "features": ["cart"], "copy": ["strategies", "variants", "enabled"],
        "planOnly": False,
    },
    f"put {_PROJECT}/environments/<str:name>/settings": {"commentRequired": True},
    f"post {_PROJECT}/features": {
        "name": "new", "type": "release", "description": "d", "impressionData": True, "stale": False,
        "tags": [{"type": "team", "value": "blue"}],
    },
    f"put {_FLAG}": {"type": "release", "description": "d", "impressionData": True, "stale": True},
    f"patch {_FLAG}": PATCH,
    f"post {_FLAG}/changeProject": {"newProjectId": "default"},
    f"post {_FLAG}/clone": {"name": "copy", "replaceGroupId": True},
    f"post {_FLAG}/dependencies": {"feature": "third", "enabled": True, "variants": ["blue"]},
    f"post {_FLAG}/lifecycle/complete": {"status": "kept", "statusValue": "blue"},
    f"put {_FLAG}/payload-schema": {"schema": {"type": "object", "title": "Price"}},
    f"post {_FLAG}/link": {"url": "https://example.org/2", "title": "t"},
    "post /api/admin/events/<str:event_id>/revert": {"feature": "cart"},
    f"post {_ADMIN}/environments/<str:name>/revert": {"at": "<moment>", "projects": ["shop"], "features": ["cart"]},
    f"post {_FLAG}/revert": {"at": "<moment>", "environments": ["production"], "dependencies": True, "details": True},
    f"put {_FLAG}/link/<str:link_id>": {"url": "https://example.org/3", "title": "t"},
    f"post {_PLACE}/strategies": STRATEGY,
    f"put {_PLACE}/strategies/<str:strategy_id>": STRATEGY,
    f"patch {_PLACE}/strategies/<str:strategy_id>": [
        {"op": "replace", "path": "/disabled", "value": True},
        {"op": "add", "path": "/constraints", "value": CONSTRAINTS},
        {"op": "move", "from": "/title", "path": "/title"},
    ],
    f"post {_PLACE}/strategies/set-sort-order": [{"id": "<strategy>", "sortOrder": 1}],
    f"put {_PLACE}/variants": [FLAG_VARIANT],
    f"put {_FLAG}/variants-batch": {"variants": [FLAG_VARIANT], "environments": ["production"]},
    f"patch {_PLACE}/variants": [{"op": "add", "path": "/0", "value": FLAG_VARIANT}],
    f"put {_PROJECT}/groups/<str:holder_id>/roles": {"roles": [BuiltIn.MEMBER]},
    f"put {_PROJECT}/users/<str:holder_id>/roles": {"roles": [BuiltIn.MEMBER]},
    f"post {_PROJECT}/role/<str:role_id>/access": {"users": [{"id": "<person>"}], "groups": [{"id": "<group>"}]},
    f"post {_ADMIN}/roles": ROLE,
    f"put {_ADMIN}/roles/<str:role_id>": ROLE,
    f"post {_ADMIN}/roles/validate": ROLE,
    f"post {_ADMIN}/segments": SEGMENT,
    f"put {_ADMIN}/segments/<str:segment_id>": SEGMENT,
    f"put {_ADMIN}/segments/<str:segment_id>/list": {"values": ["42", "7"]},
    f"put {_ADMIN}/segments/<str:segment_id>/list/source": {
        "url": "https://crm.example.com/beta.csv?key=1", "format": "csv", "column": "userId", "intervalMinutes": 60,
    },
    f"post {_ADMIN}/segments/strategies": {
        "projectId": "shop", "environmentId": "production", "strategyId": "<strategy>", "segmentIds": ["<segment>"],
    },
    f"post {_ADMIN}/segments/validate": {"name": "adults"},
    f"post {_ADMIN}/service-account": {"name": "Robot", "username": "robot-2", "rootRole": BuiltIn.EDITOR},
    f"put {_ADMIN}/service-account/<str:account_id>": {"name": "Robot", "rootRole": BuiltIn.EDITOR},
    f"post {_ADMIN}/service-account/<str:account_id>/token": PERSONAL_TOKEN,
    f"post {_ADMIN}/strategies": STRATEGY_TYPE | {"name": "byHost"},
    f"put {_ADMIN}/strategies/<str:name>": STRATEGY_TYPE,
    f"post {_ADMIN}/tags": {"type": "team", "value": "blue"},
    f"post {_ADMIN}/addons": INTEGRATION,
    f"put {_ADMIN}/addons/<str:addon_id>": INTEGRATION,
    f"post {_ADMIN}/signals": {"name": "grafana", "kind": "generic"},
    f"post {_ADMIN}/signals/<str:source_id>/rules": SIGNAL_RULE,
    f"put {_ADMIN}/signals/<str:source_id>/rules/<str:rule_id>": SIGNAL_RULE,
    f"post {_ADMIN}/signals/<str:source_id>/rules/<str:rule_id>/try": make_body(make_alert()),
    "post /api/signals/<str:source>": make_body(make_alert()),
    f"post {_ADMIN}/tag-types": TAG_TYPE | {"name": "area"},
    f"put {_ADMIN}/tag-types/<str:name>": TAG_TYPE,
    f"post {_ADMIN}/tag-types/validate": TAG_TYPE | {"name": "area"},
    f"post {_ADMIN}/invite-link/tokens": {
        "name": "Team", "expiresAt": "<in a month>", "rootRole": BuiltIn.EDITOR
    },
    f"put {_ADMIN}/invite-link/tokens/<str:token>": {"expiresAt": "<in a month>", "enabled": True},
    f"post {_ADMIN}/maintenance": {"enabled": False},
    f"post {_ADMIN}/scim-settings": {"enabled": False},
    f"post {_ADMIN}/ui-config/cors": {"frontendApiOrigins": ["https://app.example.org", "*"]},
    f"post {_ADMIN}/feedback": {"feedbackId": "nps", "neverShow": True},
    f"put {_ADMIN}/feedback/<str:feedback_id>": {"neverShow": True},
    f"post {_ADMIN}/record-ui-error": {"errorMessage": "m", "errorStack": "s"},
    f"post {_ADMIN}/user-admin/inactive/delete": {"ids": ["<person>"]},
    f"post {_ADMIN}/user-admin/reset-password": {"id": "somebody"},
    f"post {_ADMIN}/user-admin": PERSON | {"username": "ida", "sendEmail": False} | PASSWORD,
    f"put {_ADMIN}/user-admin/<str:user_id>": PERSON,
    f"post {_ADMIN}/user-admin/<str:user_id>/change-password": PASSWORD,
    f"post {_ADMIN}/user-admin/validate-password": PASSWORD,
    f"post {_ADMIN}/user/change-password": PASSWORD | {"confirmPassword": PASSWORD["password"]},
    f"post {_ADMIN}/user/tokens": PERSONAL_TOKEN,
    "post /auth/simple/login": {"username": "somebody", "password": "correct horse", "code": "123456"},
    "post /auth/reset/password": {"token": "t", "password": "correct horse"},
    "post /auth/reset/password-email": {"email": "somebody@example.org"},
    "post /auth/reset/validate-password": {"password": "correct horse"},
    "post /invite/<str:token>/signup": {
        "username": "ida", "email": "ida@example.org", "name": "Ida", "password": "correct horse battery"
    },
    "post /api/client/metrics": METRICS,
    "post /api/client/metrics/bulk": BULK,
    "post /api/client/register": REGISTRATION,
    "post /api/client/relays": RELAYS,
    "post /api/frontend": {"context": QUESTION["context"]},
    "post /api/frontend/client/metrics": METRICS,
    "post /api/frontend/client/register": REGISTRATION,
    "post /ofrep/v1/evaluate/flags": {"context": {"targetingKey": "7", "country": "NO"}},
    "post /ofrep/v1/evaluate/flags/<text:key>": {"context": {"targetingKey": "7", "country": "NO"}},
    "post /edge/validate": {"tokens": ["shop:production.abc"]},
}  # fmt: skip

VALID |= {
    operation.replace(f"{_ADMIN}/release-plan-templates", f"{_PROJECT}/release-templates"): body
    for operation, body in VALID.items()
    if "release-plan-templates" in operation
}


def valid_body(operation: str, world: dict[str, Any]) -> Any:
    """The body with the ids of this world in it."""
    return _filled(VALID[operation], world)


def bodies(method: str, route: Route, world: dict[str, Any]) -> list[Any]:
    """The shortest and the fullest; one of an operation that takes none."""
    operation = f"{method} {route}"
    full = [valid_body(operation, world)] if operation in VALID else []
    return [body_for(method, route, world), *full]


def _filled(value: Any, world: dict[str, Any]) -> Any:
    if isinstance(value, dict):
        return {key: _filled(item, world) for key, item in value.items()}
    if isinstance(value, list):
        return [_filled(item, world) for item in value]
    if isinstance(value, str) and value.startswith("<"):
        found = world[value.strip("<>")]
        return found if isinstance(found, int) else str(found)
    return value
