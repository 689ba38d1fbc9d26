"""Rules for signal sources and their rules."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from flagadmin.core.errors import Problem
from integrations.models import SignalRule, SignalSource

MAX_RULES = 100  # of a source
MAX_CONDITIONS = 10
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,99}")


def find_source_problems(name: str) -> Iterator[Problem]:
    if not _NAME.fullmatch(name):
        yield Problem("name", "must be lower-case letters, digits, - and _, because it is part of the URL")
    elif SignalSource.objects.filter(name=name).exists():
        yield Problem("name", f"there is a source {name} already")


def find_rule_problems(
    source: SignalSource, values: Mapping[str, Any], *, instead: SignalRule | None
) -> Iterator[Problem]:
    others = source.rules.exclude(pk=instead.pk) if instead else source.rules.all()
    if others.filter(name=values["name"]).exists():
        yield Problem("name", f"there is a rule {values['name']} already")
    if len(others) >= MAX_RULES:
        yield Problem("name", f"a source has at most {MAX_RULES} rules")
    yield from match_problems(values["match"])


def match_problems(match: Mapping[str, str]) -> Iterator[Problem]:
    if not 1 <= len(match) <= MAX_CONDITIONS:
        yield Problem(
            "match", f"must have 1 to {MAX_CONDITIONS} conditions, such as labels.alertname: CheckoutErrors"
        )
    for path, value in match.items():
        if not path.strip() or not value:
            yield Problem("match", "each condition needs a path and a value; * is any value")
