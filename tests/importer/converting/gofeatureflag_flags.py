"""Flags of GO Feature Flag that are converted exactly.

What its own evaluator (the WebAssembly module of gofeatureflag-python-provider 1.3.0, whose runtime is too large for
the tests) gives of them for the users of ``make_users(FIELDS)`` is in ``gofeatureflag_results.json``: by flag the
variations in their order, and for each user the place of the one that is served, or - for none.
"""

from typing import Any

FIELDS = {
    "country": ["NO", "no", "SE", "DE", None],
    "plan": ["free", "Pro", "enterprise", None],
    "email": ["ada@example.org", "Bob@Example.com", "eve@example.org", None],
    "age": [0, 5, 17, 18, 19, 65, None],
    "version": ["1.2.3", "1.2.4-rc.1", "2.0.0", "2.1.7", None],
    "beta": [True, False, None],
}
BOOLEAN = {"on": True, "off": False}
TEXTS = {"a": "A", "b": "B", "c": "C"}


def rule(query: str, variation: str = "on", **more: Any) -> Any:
    return {"name": "rule", "query": query, "variation": variation, **more}


def flag(*rules: Any, variations: Any = BOOLEAN, default: Any = "off", **more: Any) -> Any:
    served = {"variation": default} if isinstance(default, str) else default
    return {"variations": variations, "targeting": [*rules], "defaultRule": served, **more}


DOCUMENT = {
    "static-on": flag(default="on"),
    "static-off": flag(),
    "disabled": flag(default="on", disable=True),
    "equal": flag(rule('country eq "NO"')),
    "member": flag(rule('country in ["NO","SE"]')),
    "numbers": flag(rule("age gt 5 and age le 18")),
    "symbols": flag(rule("age >= 18"), rule("age < 1")),
    "number": flag(rule("age eq 18")),
    "not-number": flag(rule("age ne 18")),
    "number-member": flag(rule("age in [17,18]")),
    "boolean": flag(rule("beta eq true")),
    "not-boolean": flag(rule("beta ne true")),
    "contains": flag(rule('email co "example.o"')),
    "starts": flag(rule('email sw "bob"')),
    "ends": flag(rule('email ew ".COM"')),
    "present": flag(rule("email pr")),
    "versions": flag(rule("version ge 1.2.4 and version lt 2.1.0")),
    "not-version": flag(rule("version ne 2.0.0")),
    "either": flag(rule('age gt 18 or beta eq true and country eq "DE"')),
    "parentheses": flag(rule('age gt 18 or (beta eq true and country eq "DE")')),
    "upper-case": flag(rule('age GT 18 and country EQ "DE"')),
    "not-both": flag(rule('not (age gt 17 and email ew ".org")')),
    "user": flag(rule('targetingKey in ["user-1","user-2"]')),
    "turned-off-first": flag(rule("age lt 18", "off"), rule("beta eq true", "off"), default="on"),
    "ignored-rule": flag(rule("age gt 18", disable=True), rule("age eq 5")),
    "texts": flag(rule('country eq "NO"', "a"), rule('plan eq "pro"', "b"), variations=TEXTS, default="c"),
    "objects": flag(rule("age gt 17", "b"), variations={"a": {"x": 1}, "b": [1, 2.5]}, default="a"),
    "json-logic": flag(rule('{"and":[{"==":[{"var":"country"},"NO"]},{">":[{"var":"age"},5]}]}')),
    "all-of-it": flag(default={"percentage": {"on": 100, "off": 0}}),
    "during": flag(
        default="on", experimentation={"start": "2020-01-01T00:00:00Z", "end": "2990-01-01T00:00:00Z"}
    ),
    "before": flag(default="on", experimentation={"start": "2989-01-01T00:00:00Z"}),
    "after": flag(default="on", experimentation={"end": "2021-01-01T00:00:00Z"}),
}
SPLITS = {
    "split": flag(variations=TEXTS, default={"percentage": {"a": 20, "b": 50, "c": 30}}),
    "rollout": flag(default={"percentage": {"on": 30, "off": 70}}, bucketingKey="email"),
}
