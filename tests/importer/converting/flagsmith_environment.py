"""An environment of Flagsmith whose flags are converted exactly."""

from typing import Any

FIELDS = {
    "country": ["NO", "SE", "DE", None],
    "plan": ["free", "pro", "enterprise", None],
    "email": ["ada@example.org", "bob@example.com", "eve@example.org", None],
    "age": [0, 5, 17, 18, 19, 65, None],
    "version": ["1.2.3", "1.2.4-rc.1", "2.0.0-alpha", "2.0.0", "2.1.7", None],
    "beta": [True, False, None],
}


def state(
    name: str, enabled: bool = True, value: Any = None, priority: int | None = None, **more: Any
) -> Any:
    made = {"feature": {"id": 1, "name": name, "type": "STANDARD"}, "enabled": enabled, "feature_state_value": value, "featurestate_uuid": f"uuid-{name}", "django_id": None, "multivariate_feature_state_values": [], **more}  # fmt: skip
    return made if priority is None else {**made, "feature_segment": {"priority": priority}}


def condition(operator: str, name: str, value: Any = None) -> Any:
    return {"operator": operator, "property_": name, "value": value}


def rule(*conditions: Any, kind: str = "ALL", rules: Any = ()) -> Any:
    return {"type": kind, "rules": [*rules], "conditions": [*conditions]}


def segment(number: int, name: str, *rules: Any, states: Any = ()) -> Any:
    return {"id": number, "name": name, "rules": [*rules], "feature_states": [*states]}


CONDITIONS = {
    "equal": condition("EQUAL", "country", "NO"),
    "not-equal": condition("NOT_EQUAL", "country", "NO"),
    "number": condition("EQUAL", "age", "18"),
    "not-number": condition("NOT_EQUAL", "age", "18"),
    "above": condition("GREATER_THAN", "age", "17"),
    "at-least": condition("GREATER_THAN_INCLUSIVE", "age", "18"),
    "below": condition("LESS_THAN", "age", "18"),
    "at-most": condition("LESS_THAN_INCLUSIVE", "age", "5"),
    "true": condition("EQUAL", "beta", "true"),
    "false": condition("EQUAL", "beta", "False"),
    "contains": condition("CONTAINS", "email", "example.o"),
    "contains-not": condition("NOT_CONTAINS", "email", "example.o"),
    "pattern": condition("REGEX", "email", "(ada|bob)@"),
    "members": condition("IN", "country", "NO,SE"),
    "members-list": condition("IN", "age", '["5", "65"]'),
    "is-set": condition("IS_SET", "plan"),
    "version": condition("GREATER_THAN_INCLUSIVE", "version", "2.0.0:semver"),
    "identity": condition("IN", "$.identity.identifier", "user-1,user-2"),
}
RULES = {
    "any": rule(condition("EQUAL", "country", "NO"), condition("EQUAL", "plan", "pro"), kind="ANY"),
    "none": rule(condition("EQUAL", "country", "NO"), condition("EQUAL", "plan", "pro"), kind="NONE"),
    "nested": rule(
        condition("LESS_THAN", "age", "60"),
        rules=[rule(condition("EQUAL", "country", "NO"), condition("EQUAL", "country", "SE"), kind="ANY"), rule(condition("EQUAL", "plan", "free"), kind="NONE")],
    ),
}  # fmt: skip
SEGMENTS = [
    *(segment(n, name, rule(rules=[rule(each)]), states=[state(name, True, priority=1)]) for n, (name, each) in enumerate(CONDITIONS.items(), 1)),
    *(segment(n, name, each, states=[state(name, True, priority=1)]) for n, (name, each) in enumerate(RULES.items(), 100)),
    segment(200, "nordic", rule(condition("IN", "country", "NO,SE")), states=[state("overridden", True, "nordic", 2), state("turned-off", False, None, 1)]),
    segment(201, "professional", rule(condition("EQUAL", "plan", "pro")), states=[state("overridden", True, 7, 1)]),
    segment(202, "empty", states=[state("never", True, priority=0)]),
]  # fmt: skip
ENVIRONMENT = {
    "id": 1,
    "api_key": "env-key",
    "name": "Production",
    "project": {"id": 1, "name": "shop", "hide_disabled_flags": False, "organisation": {"id": 1}, "segments": SEGMENTS},
    "feature_states": [
        state("on"), state("off", False), state("text", True, "hello"), state("boolean-value", True, False), state("never", False),
        *(state(name, False) for name in (*CONDITIONS, *RULES)),
        state("overridden", True, "default"), state("turned-off", True, "on"), state("identities", True, "all"),
        state("all-of-it", True, "control", multivariate_feature_state_values=[{"id": 1, "percentage_allocation": 100.0, "multivariate_feature_option": {"value": "b"}}]),
    ],
    "identity_overrides": [
        {"identifier": "user-1", "identity_features": [state("identities", False)]},
        {"identifier": "user-2", "identity_features": [state("identities", True, "two"), state("overridden", True, "mine")]},
        {"identifier": "user-3", "identity_features": [state("identities", False)]},
    ],
}  # fmt: skip
