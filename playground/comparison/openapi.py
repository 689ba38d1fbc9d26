"""Describes the comparison in the OpenAPI document."""

from typing import Any

from django.conf import settings
from rest_framework import serializers as s

from flagadmin.core.http.fields import Texts
from flagadmin.core.http.request_bodies import ManyValuesParser
from playground.openapi import OutcomeField, Payload

BODY_MB = settings.COMPARE_BODY_LIMIT // 1_000_000
VALUES = ManyValuesParser.bounds.values

DESCRIPTION = f"""\
Evaluates flags in two states for the same contexts, and says how many get something else, who, and why.

A state is what is stored in an environment now; what was there at a moment in the past (`at`); or what would be stored
there once a `draft` is saved: a flag with other strategies, variants or parents, turned on or off, or archived; or
segments with other constraints; or what an `import` would leave there, the id of one of your own that the console
previews and that is not applied; or what an SDK token gets from another server that speaks Unleash's API (`remote`).

The past is read from the audit events: flags, segments and parents as they were, also of flags and environments that
have been deleted since; of deleted projects for admins only. Where flags were changed outside flagadmin since then,
`notes` says when; without such changes there are no `notes`. A moment ahead is what is stored now with all change
requests that are scheduled until then, which `notes` names. In both states, `currentTime` is now unless given.

`contexts` are given (`explicit`), saved ones by their names (`saved`), rows of a file (`csv`), edge cases generated
from the conditions so that each is met and missed (`generated`), a number of generated users with ids of their own
(`synthetic`), or several of these; `fixed` fields are those of all that are generated. In other fields a generated
user has what the flag at hand and its parents name, so that a flag has the same share whatever else is compared. The
same request gives the same contexts. Edge cases are those of the first 500 flags by name, values of users those of the
first 5,000. At most 10,000 contexts are explicit, 10,000 of a file and 10,000 generated users, and flags times
contexts are at most 1,000,000. The body may have {BODY_MB} MB and {VALUES:,} values.

A draft is read as saving its members would store them: a strategy with an `id` keeps what is not given, weights are
shared out, and a flag that is turned on without a strategy gets the default strategy. What saving would refuse, the
draft refuses with the same words and the place in the draft. Only permissions are not asked for.

Nothing is drawn: a result that is random on each call is given with its share of calls, and in `before` and `after` of
a flag each such context counts with its share. `counts` say for how many contexts a flag goes from off to on
(`offToOn`), from on to off (`onToOff`), stays on with another `variant`, keeps its variant with another `payload`, has
other shares (`share`), may change in a way that only an SDK can tell (`unknown`), or stays as it is (`unchanged`).
`people` counts the contexts for which at least one flag changes. With `flag`, that flag and those that depend on it are
compared (at moments in the past: those that depend on it now); without, all flags of the projects. `flags` has those
that change, and the one that is named. A payload of another type is another one; white space between the tokens of JSON
does not count. Values of more than 1,000 characters are cut in the answer.

Where both states are of one environment, `expectations` has what saved contexts expect of these flags and of those that
depend on them: the first 1,000 that are met before and not after (`broken`), and the other way around (`met`).

Everybody may compare the flags of projects that they can read.
"""


class Counts(s.Serializer[Any]):
    offToOn = s.IntegerField()
    onToOff = s.IntegerField()
    variant = s.IntegerField()
    payload = s.IntegerField()
    share = s.IntegerField()
    unknown = s.IntegerField()
    unchanged = s.IntegerField()


class CountedAnswer(s.Serializer[Any]):
    isEnabled = OutcomeField()
    variant = s.CharField(allow_null=True)
    contexts = s.FloatField(help_text="Contexts that get it; random ones count with their share.")


class ComparedAnswer(CountedAnswer):
    payload = Payload(allow_null=True)


class ComparedFlag(s.Serializer[Any]):
    name = s.CharField()
    counts = Counts()
    before = ComparedAnswer(many=True)
    after = ComparedAnswer(many=True)


class SharedAnswer(s.Serializer[Any]):
    isEnabled = OutcomeField()
    variant = s.CharField(allow_null=True)
    payload = Payload(allow_null=True)
    share = s.FloatField(help_text="The share of calls that give it: 1 if the result is not random.")


class ComparedResult(s.Serializer[Any]):
    results = SharedAnswer(many=True)
    reason = s.CharField()


class ComparedExample(s.Serializer[Any]):
    flag = s.CharField()
    context = s.DictField(child=s.CharField())  # type: ignore[assignment]  # a field's name, not DRF's own
    savedContext = s.CharField(required=False, help_text="The name of the context, if it is a saved one.")
    change = s.ChoiceField(["offToOn", "onToOff", "variant", "payload", "share", "unknown"])
    before = ComparedResult()
    after = ComparedResult()


class ExpectationRecord(s.Serializer[Any]):
    savedContext = s.CharField()
    project = s.CharField()
    flag = s.CharField()
    environment = s.CharField()
    enabled = s.BooleanField(help_text="Whether the flag is expected to be on.")
    variant = s.CharField(allow_null=True)
    payload = Payload(required=False, help_text="Missing: any.")
    enforcedIn = s.CharField(
        allow_null=True, help_text="The project that refuses to break it, if it refuses that."
    )


class ChangedExpectation(ExpectationRecord):
    before = ComparedResult()
    after = ComparedResult()


class ChangedExpectations(s.Serializer[Any]):
    broken = ChangedExpectation(many=True, help_text="Met before, not after.")
    met = ChangedExpectation(many=True, help_text="Not met before, met after.")


class CompareResponse(s.Serializer[Any]):
    contexts = s.IntegerField()
    people = s.IntegerField(help_text="Contexts for which at least one flag changes.")
    counts = Counts()
    flags = ComparedFlag(many=True)
    examples = ComparedExample(many=True)
    expectations = ChangedExpectations()
    notes = Texts(required=False, help_text="Changes since then whose past is not known.")


REQUEST_EXAMPLE: dict[str, Any] = {
    "from": {"environment": "production"},
    "to": {
        "environment": "production",
        "draft": {
            "flag": "dark-theme",
            "strategies": [
                {"name": "flexibleRollout", "parameters": {"rollout": "75", "stickiness": "userId"}}
            ],
        },
    },
    "flag": "dark-theme",
    "contexts": {"explicit": [{"userId": "42"}, {"userId": "7"}]},
}
PAST_EXAMPLE: dict[str, Any] = {
    "from": {"environment": "production", "at": "2026-11-21T14:03:00Z"},
    "to": {"environment": "production"},
    "contexts": {"explicit": [{"userId": "42"}]},
}
_COUNTS = {
    "offToOn": 1,
    "onToOff": 0,
    "variant": 0,
    "payload": 0,
    "share": 0,
    "unknown": 0,
    "unchanged": 1,
}
RESPONSE_EXAMPLE: dict[str, Any] = {
    "contexts": 2,
    "people": 1,
    "counts": _COUNTS,
    "flags": [
        {
            "name": "dark-theme",
            "counts": _COUNTS,
            "before": [
                {"isEnabled": False, "variant": None, "payload": None, "contexts": 1.0},
                {"isEnabled": True, "variant": None, "payload": None, "contexts": 1.0},
            ],
            "after": [{"isEnabled": True, "variant": None, "payload": None, "contexts": 2.0}],
        }
    ],
    "examples": [
        {
            "flag": "dark-theme",
            "context": {"userId": "42"},
            "change": "offToOn",
            "before": {
                "results": [{"isEnabled": False, "variant": None, "payload": None, "share": 1.0}],
                "reason": "userId 42 is in bucket 53 and the rollout stops at 50 %",
            },
            "after": {
                "results": [{"isEnabled": True, "variant": None, "payload": None, "share": 1.0}],
                "reason": "userId 42 is in bucket 53, 75 % rollout",
            },
        }
    ],
    "expectations": {
        "broken": [],
        "met": [
            {
                "savedContext": "Norwegian beta user",
                "project": "checkout",
                "flag": "dark-theme",
                "environment": "production",
                "enabled": True,
                "variant": None,
                "enforcedIn": None,
                "before": {
                    "results": [{"isEnabled": False, "variant": None, "payload": None, "share": 1.0}],
                    "reason": "userId 42 is in bucket 53 and the rollout stops at 50 %",
                },
                "after": {
                    "results": [{"isEnabled": True, "variant": None, "payload": None, "share": 1.0}],
                    "reason": "userId 42 is in bucket 53, 75 % rollout",
                },
            }
        ],
    },
}
