"""Flags of flagd that are converted exactly."""

from typing import Any

BOOLEAN = {"on": True, "off": False}
TEXTS = {"a": "A", "b": "B", "c": "C"}
FIELDS = {
    "country": ["NO", "SE", "DE", None],
    "plan": ["free", "pro", "enterprise", None],
    "email": ["ada@example.org", "bob@example.com", "eve@example.org", None],
    "age": [0, 5, 17, 18, 19, 65, None],
    "version": ["1.2.3", "1.2.4-rc.1", "2.0.0-alpha", "2.0.0", "2.1.7", "3.0.0", None],
    "beta": [True, False, None],
}


def var(name: str) -> Any:
    return {"var": name}


def flag(targeting: Any = None, variants: Any = BOOLEAN, default: Any = "off", state: str = "ENABLED") -> Any:
    definition = {"state": state, "variants": variants, "defaultVariant": default}
    return definition if targeting is None else {**definition, "targeting": targeting}


FLAGS = {
    "static-on": flag(default="on"),
    "static-off": flag(),
    "disabled": flag({"if": [True, "on"]}, state="DISABLED"),
    "code-default": flag(variants=TEXTS, default=None),
    "in-list": flag({"if": [{"in": [var("country"), ["NO", "SE"]]}, "on", "off"]}),
    "not-in-list": flag({"if": [{"!": {"in": [var("country"), ["NO", "SE"]]}}, "on"]}),
    "turned-off-first": flag(
        {"if": [{"==": [var("country"), "DE"]}, "off", {"!=": [var("plan"), "free"]}, "on", "off"]}
    ),
    "default-on": flag(
        {"if": [{"and": [{"==": [var("country"), "DE"]}, {"==": [var("plan"), "pro"]}]}, "off"]}, default="on"
    ),
    "nested": flag(
        {
            "if": [
                {"==": [var("country"), "NO"]},
                {"if": [{"==": [var("plan"), "pro"]}, "a", "b"]},
                {">=": [var("age"), 18]},
                "c",
            ]
        },
        variants=TEXTS,
        default="a",
    ),
    "numbers": flag({"if": [{"<": [var("age"), 18]}, "on"]}),
    "numbers-2": flag({"if": [{"<=": [5, var("age"), 18]}, "on"]}),
    "numbers-3": flag({"if": [{">": [18, var("age")]}, "on", "off"]}),
    "number-equal": flag({"if": [{"==": [var("age"), 18]}, "on"]}),
    "number-not-equal": flag({"if": [{"!==": [var("age"), 18]}, "on"]}),
    "any": flag(
        {"or": [{"==": [var("beta"), True]}, {"ends_with": [var("email"), "@example.org"]}]},
        variants={"true": True, "false": False},
        default="false",
    ),
    "texts": flag(
        {"if": [{"starts_with": [var("email"), "ada"]}, "on", {"in": ["example.com", var("email")]}, "on"]}
    ),
    "caret": flag({"if": [{"sem_ver": [var("version"), "^", "2.0.0"]}, "on"]}),
    "tilde": flag({"if": [{"sem_ver": [var("version"), "~", "1.2"]}, "on"]}),
    "other-version": flag({"if": [{"sem_ver": [var("version"), "!=", "v2"]}, "on"]}),
    "version": flag({"if": [{"!": {"sem_ver": [var("version"), ">=", "2.0.0"]}}, "on"]}),
    "referring": flag({"if": [{"$ref": "nordic"}, "on"]}),
    "condition-if": flag(
        {
            "if": [
                {
                    "if": [
                        {"==": [var("country"), "NO"]},
                        {"==": [var("plan"), "pro"]},
                        {"==": [var("plan"), "free"]},
                    ]
                },
                "on",
            ]
        }
    ),
    "user": flag({"if": [{"in": [var("targetingKey"), ["user-1", "user-2"]]}, "on"]}),
    "launched": flag({"if": [{">": [var("$flagd.timestamp"), 1600000000]}, "on"]}),
    "future": flag({"if": [{">=": [var("$flagd.timestamp"), 4000000000]}, "on"]}),
    "objects": flag(
        {"if": [{"==": [var("country"), "NO"]}, "x", "y"]},
        variants={"x": {"size": 1}, "y": {"size": 2.5}},
        default="y",
    ),
    "counts": flag({"if": [{"==": [var("country"), "NO"]}, "x"]}, variants={"x": 7, "y": 1.5}, default="y"),
    "all-of-it": flag({"fractional": [["on", 100], ["off", 0]]}),
}
DOCUMENT = {
    "$schema": "https://flagd.dev/schema/v0/flags.json",
    "flags": FLAGS,
    "$evaluators": {"nordic": {"in": [var("country"), ["NO", "SE"]]}},
}
