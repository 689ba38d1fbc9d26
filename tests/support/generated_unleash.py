"""A made-up installation of Unleash 8, in the form in which one is recorded. As large as wanted."""

from collections.abc import Iterator
from typing import Any

from flagadmin.core.document import Document

ENVIRONMENTS = {"development": 2, "production": 3, "staging": 150}
LISTED = ("development", "production")  # the free edition leaves the others out
EXPORT = "/api/admin/features-batch/export"
SEGMENTS: list[Document] = [
    {
        "id": 41,
        "name": "nordics",
        "description": None,
        "constraints": [{"values": ["NO", "SE"], "operator": "IN", "contextName": "country"}],
    },
    {
        "id": 40,
        "name": "big-carts",
        "description": "large baskets",
        "project": "p0",
        "constraints": [{"value": "100.5", "values": [], "operator": "NUM_GTE", "contextName": "cartTotal"}],
    },
]
FIELDS: list[Document] = [
    {"name": name, "description": None, "stickiness": name == "country", "sortOrder": 0, "legalValues": legal}
    for name, legal in {
        "country": [{"value": "NO"}, {"value": "SE"}, {"value": "DE"}],
        "cartTotal": [],
    }.items()
]
TAG_TYPES: list[Document] = [{"name": "team", "description": None, "icon": None, "color": "#FF0000"}]
STRATEGY_TYPES: list[Document] = [
    {"name": "flexibleRollout", "editable": False, "parameters": [], "description": None, "title": None},
    {
        "name": "hostGroup",
        "editable": True,
        "parameters": [{"name": "hosts", "type": "list", "required": True}],
        "description": "hosts",
        "title": None,
        "deprecated": True,
    },
]


def make_recording(flags: int, projects: int = 2, more_tokens: int = 0, people: int = 6) -> Document:
    """``flags`` of all projects together, the last of each archived; a token for each project and environment, and
    more which get what these get."""
    ids = [f"p{number}" for number in range(projects)]
    owned = {
        project: [f"{project}.flag-{n:05}" for n in range(k, flags, projects)]
        for k, project in enumerate(ids)
    }
    tokens = list(_tokens(ids))
    listed = [*tokens, *(_repeat_token(tokens, number) for number in range(more_tokens))]
    answers: list[tuple[str, str, Document | None, Any]] = [
        ("GET", "/api/admin/ui-config", None, {"version": "8.2.0", "environment": "Open Source"}),
        ("GET", "/api/admin/environments", None, {"environments": [_environment(name) for name in LISTED]}),
        ("GET", "/api/admin/context", None, FIELDS),
        ("GET", "/api/admin/segments", None, {"segments": SEGMENTS}),
        ("GET", "/api/admin/strategies", None, {"strategies": STRATEGY_TYPES}),
        ("GET", "/api/admin/tag-types", None, {"tagTypes": TAG_TYPES}),
        ("GET", "/api/admin/api-tokens", None, {"tokens": listed}),
        ("GET", "/api/admin/projects", None, {"projects": [{"id": ids[0]}]}),
        ("GET", "/api/admin/user-admin", None, {"users": list(_people(people))}),
    ]
    for project, names in owned.items():
        answers += _project_answers(project, names)
    requests = [make_request(path, answer, method=m, body=body) for m, path, body, answer in answers]
    for token in tokens:
        if token["type"] == "client" and token["expiresAt"] is None and not token["secure"]:
            among = ids if token["projects"] == ["*"] else token["projects"]
            answer = _client_features(
                [name for project in among for name in owned[project]], token["environment"], owned
            )
            spec = {"Unleash-Client-Spec": "5.2.0"}
            path, name = "/api/client/features", token["tokenName"]
            requests.append(make_request(path, answer, token=name, headers=spec))
    return {"tokens": {token["tokenName"]: token["secret"] for token in listed}, "requests": requests}


def make_request(
    path: str,
    answer: Any,
    *,
    method: str = "GET",
    body: Document | None = None,
    token: str = "admin",
    headers: dict[str, str] | None = None,
) -> Document:
    """One recorded request with its answer. ``token``: its name."""
    asked = {"method": method, "path": path, "body": body, "token": token, "headers": headers}
    return asked | {"status": 200, "answer": answer}


def _repeat_token(tokens: list[Document], number: int) -> Document:
    """Another one with the scope of one of the first, which are for a project and an environment each."""
    of = tokens[number % (len(tokens) - 6)]
    return of | {"tokenName": f"more-{number}", "secret": f"{of['secret']}{number:04}"}


def _environment(name: str) -> Document:
    return {
        "name": name,
        "type": "preproduction" if name == "staging" else name,
        "sortOrder": ENVIRONMENTS[name],
        "enabled": True,
        "protected": False,
        "requiredApprovals": None,
    }


def _people(count: int) -> Iterator[Document]:
    for number in range(1, count + 1):
        yield {
            "id": number,
            "name": f"Person {number}",
            "email": f"person{number}@example.com",
            "rootRole": 1 + number % 3,
        }


def _tokens(projects: list[str]) -> Iterator[Document]:
    secret = "0123456789abcdef" * 3
    made = [
        *((f"{p}-{e}", f"{p}:{e}", "client", [p], e) for p in projects for e in ENVIRONMENTS),
        ("all", "*:production", "client", ["*"], "production"),
        ("several", "[]:production", "client", projects[:2], "production"),
        ("browser", f"{projects[0]}:production", "frontend", [projects[0]], "production"),
        ("expired", "*:development", "client", ["*"], "development"),
        ("unreadable", "*:staging", "client", ["*"], "staging"),
        ("admin", "*:*", "admin", ["*"], "*"),
    ]
    for number, (name, scope, kind, among, environment) in enumerate(made):
        yield {
            "tokenName": name,
            "secret": "*:*.unleash-admin-secret" if kind == "admin" else f"{scope}.{number:04}{secret}",
            "type": kind,
            "projects": among,
            "environment": environment,
            "expiresAt": "2020-01-01T00:00:00.000Z" if name == "expired" else None,
            "alias": None,
            "secure": name == "unreadable",
        }


def _project_answers(project: str, names: list[str]) -> Iterator[tuple[str, str, Document | None, Any]]:
    path = f"/api/admin/projects/{project}"
    default = {
        "name": "flexibleRollout",
        "segments": [41],
        "parameters": {"groupId": "", "rollout": "25", "stickiness": "userId"},
        "constraints": [],
    }
    overview = {
        "name": f"Project {project}",
        "description": None,
        "mode": "open",
        "defaultStickiness": "country",
        "featureLimit": None,
        # Its flags were there before the pattern.
        "featureNaming": {"pattern": "^new-.+$", "example": "new-one", "description": None},
        "linkTemplates": [],
        "environments": [
            {"environment": name, **({"defaultStrategy": default} if name == "production" else {})}
            for name in ENVIRONMENTS
        ],
    }
    yield "GET", f"{path}/overview", None, overview
    yield "GET", f"{path}/context", None, []
    listed = [_listed(name) for name in names]
    yield "GET", f"{path}/features", None, {"features": listed[:-1]}
    query = f"project=IS:{project}&archived=IS:true&limit=100"
    yield "GET", f"/api/admin/search/features?{query}", None, {"features": listed[-1:], "total": 1}
    for environment in ENVIRONMENTS:
        body = {"environment": environment, "features": names, "downloadFile": False}
        yield "POST", EXPORT, body, _export(project, names, environment)
    for name in names[:-1]:
        yield "GET", f"{path}/features/{name}", None, {"environments": make_details(name)}


def _number(name: str) -> int:
    return int(name[-5:])


def _is_on(name: str, environment: str) -> bool:
    return (_number(name) + ENVIRONMENTS[environment]) % 3 != 0


def _listed(name: str) -> Document:
    environments = [
        _environment(each) | {"enabled": _is_on(name, each), "variantCount": 0} for each in ENVIRONMENTS
    ]
    return {"name": name, "environments": environments}


def _strategies(name: str, environment: str) -> list[Document]:
    """In their order."""
    number = _number(name)
    variants = [
        {
            "name": v,
            "weight": 500,
            "stickiness": "default",
            "weightType": "variable",
            "payload": {"type": "string", "value": v},
        }
        for v in ("blue", "green")
    ]
    first = {
        "name": "flexibleRollout",
        "parameters": {"groupId": name, "rollout": str(number % 101), "stickiness": "default"},
        "constraints": [
            {"values": [str(number), "x"], "operator": "IN", "contextName": "userId", "inverted": True}
        ],
        "variants": variants if number % 4 == 0 else [],
        "segments": [40, 41] if number % 5 == 0 else [],
    }
    second = {
        "name": "hostGroup" if number % 7 == 0 else "flexibleRollout",
        "parameters": {"hosts": "a,b"}
        if number % 7 == 0
        else {"groupId": "shared", "rollout": "50", "stickiness": "userId"},
        "constraints": [{"value": "10", "values": [], "operator": "NUM_GT", "contextName": "cartTotal"}],
        "variants": [],
        "segments": [],
    }
    return [first, second] if number % 2 else [first]


def _with_ids(name: str, environment: str) -> list[Document]:
    return [
        strategy | {"id": f"{name}/{environment}/{place}", "title": "", "disabled": False}
        for place, strategy in enumerate(_strategies(name, environment))
    ]


def make_details(name: str) -> list[Document]:
    return [
        _environment(each)
        | {"strategies": [s | {"sortOrder": place} for place, s in enumerate(_with_ids(name, each))]}
        for each in ENVIRONMENTS
    ]


def _parent(name: str) -> str | None:
    """The first flag of the project, for every ninth."""
    number = _number(name)
    return f"{name[:-5]}{int(name[1 : name.index('.')]):05}" if number > 20 and number % 9 == 0 else None


def _export(project: str, names: list[str], environment: str) -> Document:
    parents = {name: parent for name in names[:-1] if (parent := _parent(name))}
    return {
        "features": [_metadata(project, name) | {"archived": name == names[-1]} for name in names],
        # Not in their order, as a server may.
        "featureStrategies": [
            strategy | {"featureName": name}
            for name in names
            for strategy in reversed(_with_ids(name, environment))
        ],
        "featureEnvironments": [
            {
                "enabled": _is_on(name, environment),
                "featureName": name,
                "environment": environment,
                "variants": [],
                "name": name,
            }
            for name in names
            if environment in LISTED
        ],
        "contextFields": FIELDS,
        "featureTags": [{"featureName": name, "tagType": "team", "tagValue": "blue"} for name in names],
        "segments": [{"id": each["id"], "name": each["name"]} for each in SEGMENTS],
        "tagTypes": TAG_TYPES,
        "dependencies": [
            {"feature": name, "dependencies": [{"feature": parent, "enabled": True, "variants": []}]}
            for name, parent in parents.items()
        ],
        "links": [
            {
                "feature": names[0],
                "links": [{"id": "1", "url": "https://tickets.example.com/1", "title": None}],
            }
        ],
    }


def _metadata(project: str, name: str) -> Document:
    return {
        "name": name,
        "description": "Says <b>hello</b>",
        "type": "release",
        "project": project,
        "stale": False,
        "impressionData": _number(name) % 2 == 0,
    }


def _client_features(names: list[str], environment: str, owned: dict[str, list[str]]) -> Document:
    archived = {listed[-1] for listed in owned.values()}
    features = []
    for name in sorted(set(names) - archived):
        parent = _parent(name)
        flag = _metadata(name.split(".")[0], name) | {
            "enabled": _is_on(name, environment),
            "strategies": _strategies(name, environment),
            "variants": [],
        }
        # Once for each environment.
        parents = [{"feature": parent, "enabled": True, "variants": []}] * 3
        features.append(flag | ({"dependencies": parents} if parent else {}))
    segments = [{key: each[key] for key in ("id", "name", "constraints")} for each in SEGMENTS]
    return {"version": 2, "features": features, "segments": segments}
