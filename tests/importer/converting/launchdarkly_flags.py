"""Flags of LaunchDarkly that are converted exactly, as a file of an SDK and as the REST API lists them."""

from typing import Any

BOOLEAN = [True, False]
TEXTS = ["A", "B", "C"]
FIELDS = {
    "country": ["NO", "SE", "DE", None],
    "plan": ["free", "pro", "enterprise", None],
    "email": ["ada@example.org", "bob@example.com", "eve@example.org", None],
    "age": [0, 5, 17, 18, 19, 65, None],
    "version": ["1.2.3", "1.2.4-rc.1", "2.0.0-alpha", "2.0.0", "2.1.7", None],
    "beta": [True, False, None],
    "born": ["2000-01-01T00:00:00Z", "2010-06-01T12:00:00+02:00", None],
    "org.key": ["org-1", "org-2", None],
    "org.tier": ["gold", "silver", None],
}


def clause(attribute: str, op: str, *values: Any, **more: Any) -> Any:
    return {"attribute": attribute, "op": op, "values": [*values], **more}


def rule(variation: Any, *clauses: Any, **more: Any) -> Any:
    return {"id": "r", "variation": variation, "clauses": [*clauses], **more}


def flag(
    *rules: Any, variations: Any = BOOLEAN, fallthrough: Any = 1, off: Any = 1, on: bool = True, **more: Any
) -> Any:
    served = {"variation": fallthrough} if isinstance(fallthrough, int) else {"rollout": fallthrough}
    return {
        "on": on, "variations": variations, "fallthrough": served, "offVariation": off, "salt": "salty", "rules": [*rules],
        "targets": [], "contextTargets": [], "prerequisites": [], **more,
    }  # fmt: skip


def matching(key: str, **more: Any) -> Any:
    return clause("", "segmentMatch", key, **more)


FLAGS = {
    "on": flag(fallthrough=0),
    "off": flag(on=False),
    "off-without-variation": flag(variations=TEXTS, on=False, off=None),
    "texts": flag(rule(0, clause("country", "in", "NO", "SE")), rule(1, clause("plan", "in", "pro")), variations=TEXTS, fallthrough=2, off=None),
    "not-in": flag(rule(0, clause("country", "in", "NO", negate=True))),
    "turned-off-first": flag(rule(1, clause("country", "in", "DE")), rule(0, clause("plan", "in", "pro", "free")), fallthrough=1),
    "turned-off-two": flag(rule(1, clause("country", "in", "DE"), clause("plan", "in", "pro")), rule(1, clause("age", "lessThan", 18)), fallthrough=0),
    "targets": flag(targets=[{"values": ["user-1", "user-5"], "variation": 0}, {"values": ["user-2"], "variation": 1}], fallthrough=1),
    "context-targets": flag(
        variations=TEXTS, fallthrough=2, off=None, targets=[{"values": ["user-1", "user-5"], "variation": 0}],
        contextTargets=[{"contextKind": "org", "values": ["org-1"], "variation": 1}, {"contextKind": "user", "values": [], "variation": 0}],
    ),
    "kinds": flag(rule(0, clause("tier", "in", "gold", contextKind="org"), clause("key", "in", "org-1", contextKind="org"))),
    "not-of-kind": flag(rule(0, clause("tier", "in", "gold", contextKind="org", negate=True))),
    "not-user": flag(rule(0, clause("key", "in", "user-1", negate=True))),
    "mail": flag(rule(0, clause("email", "endsWith", "@example.org")), rule(0, clause("email", "startsWith", "bob", "zoe"))),
    "contains": flag(rule(0, clause("email", "contains", "@example.c"))),
    "matches": flag(rule(0, clause("email", "matches", "^(ada|bob)@", "^x"))),
    "numbers": flag(rule(0, clause("age", "lessThanOrEqual", 5)), rule(0, clause("age", "greaterThan", 18.5))),
    "number-in": flag(rule(0, clause("age", "in", 18, 65))),
    "true": flag(rule(0, clause("beta", "in", True))),
    "not-number": flag(rule(0, clause("age", "greaterThanOrEqual", 18, negate=True))),
    "before": flag(rule(0, clause("born", "before", "2005-01-01T00:00:00Z"))),
    "after": flag(rule(0, clause("born", "after", 1275386400000))),
    "versions": flag(rule(0, clause("version", "semVerGreaterThan", "1.2.4")), rule(0, clause("version", "semVerEqual", "1.2.3"))),
    "old-version": flag(rule(0, clause("version", "semVerLessThan", "2"))),
    "in-segment": flag(rule(0, matching("beta-users"))),
    "not-in-segment": flag(rule(0, matching("simple", negate=True))),
    "excluded": flag(rule(1, matching("beta-users")), fallthrough=0),
    "two-segments": flag(rule(0, clause("", "segmentMatch", "simple", "nested"))),
    "parent": flag(rule(0, clause("country", "in", "NO", "DE"))),
    "child": flag(fallthrough=0, prerequisites=[{"key": "parent", "variation": 0}]),
    "child-of-off": flag(fallthrough=0, prerequisites=[{"key": "parent", "variation": 1}]),
    "child-of-text": flag(fallthrough=0, prerequisites=[{"key": "texts", "variation": 1}]),
    "all-of-it": flag(fallthrough={"variations": [{"variation": 0, "weight": 100000}, {"variation": 1, "weight": 0}]}),
    "all-of-it-by-plan": flag(fallthrough={"variations": [{"variation": 1, "weight": 0}, {"variation": 0, "weight": 100000}], "bucketBy": "plan"}),
    "all-of-it-by-org": flag(fallthrough={"variations": [{"variation": 0, "weight": 100000}], "contextKind": "org"}),
    "objects": flag(rule(0, clause("country", "in", "NO")), variations=[{"a": 1}, [1, 2.5]], off=None),
    "numbers-served": flag(rule(0, clause("country", "in", "NO")), variations=[7, 1.5], off=None),
}  # fmt: skip
SEGMENTS = {
    "simple": {"rules": [{"clauses": [clause("plan", "in", "pro")]}]},
    "nested": {"rules": [{"clauses": [matching("simple"), clause("country", "in", "SE")]}]},
    "beta-users": {
        "included": ["user-3", "user-4"], "excluded": ["user-7"], "includedContexts": [{"contextKind": "org", "values": ["org-2"]}],
        "rules": [{"clauses": [clause("country", "in", "NO")]}, {"clauses": [clause("age", "greaterThan", 18), clause("plan", "in", "pro")]}],
    },
}  # fmt: skip
ROLLOUT = {"variations": [{"variation": 0, "weight": 30000}, {"variation": 1, "weight": 70000}]}
DOCUMENT = {
    "flags": FLAGS,
    "segments": SEGMENTS,
    "flagValues": {"simple-value": "hello", "simple-flag": True},
}


def listed(flags: Any = FLAGS, segments: Any = SEGMENTS, environments: Any = ("production",)) -> Any:
    """The same as the REST API lists it."""
    items = []
    for key, each in flags.items():
        targeting = {k: v for k, v in each.items() if k != "variations"}
        items.append(
            {
                "key": key, "name": key.title(), "kind": "multivariate", "tags": ["web"], "temporary": True, "archived": False,
                "variations": [{"_id": str(n), "value": value} for n, value in enumerate(each["variations"])],
                "environments": dict.fromkeys(environments, targeting),
            }
        )  # fmt: skip
    return {
        "items": items,
        "totalCount": len(items),
        "segments": {"items": [{"key": k, **v} for k, v in segments.items()]},
    }
