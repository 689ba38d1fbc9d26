"""The contexts of a comparison: explicit and saved ones, those of a CSV file, and those made from the flags' rules."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from io import BytesIO
from typing import Any, cast

from django.conf import settings
from django.utils import timezone
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from flagadmin.core.errors import Problem, ValidationError, check_problems
from flagadmin.core.http.error_responses import problems_of
from flagadmin.core.http.fields import ListOf
from groups.access import Caller
from playground.comparison.contexts import Rules, Texts, generated, synthetic
from playground.engine.context import Context, PointInTime, time_text
from playground.models import SavedContext
from playground.queries import known_fields
from playground.request import kind_of, read_context
from playground.saved_contexts.queries import named_contexts
from playground.user_runs.file import UserFile
from projects.definitions import Definitions
from projects.revision import revisions
from projects.serializers import StrictSerializer

MAX_CONTEXTS = 10_000
MAX_GENERATED = 1_000
PATH = "contexts"
Document = Mapping[str, Any]


@extend_schema_field(
    {
        "type": "array",
        "maxItems": MAX_CONTEXTS,
        "items": {"$ref": "#/components/schemas/EvaluationContextRequest"},
    }
)
class ExplicitContexts(serializers.JSONField):
    """A list of contexts; `explicit_contexts` reads them."""

    def to_internal_value(self, data: Any) -> Any:
        """As it was parsed. JSONField would serialize it, to see whether that is possible."""
        return data


@extend_schema_field({"$ref": "#/components/schemas/EvaluationContextRequest"})
class FixedFields(serializers.JSONField):
    """A context; `fixed_fields` reads it."""


class ContextsBody(StrictSerializer):
    explicit = ExplicitContexts(required=False, help_text="Contexts as the playground takes them.")
    csv = serializers.CharField(
        required=False,
        trim_whitespace=False,
        max_length=settings.COMPARE_BODY_LIMIT,
        help_text="Contexts as CSV: a header of context fields, and a row for each context.",
    )
    generated = serializers.BooleanField(
        required=False, help_text="Contexts that meet and miss every rule of the flags."
    )
    synthetic = serializers.IntegerField(
        required=False,
        min_value=1,
        max_value=MAX_CONTEXTS,
        help_text="A number of users with their own ids, and values that the rules name in other fields.",
    )
    fixed = FixedFields(
        required=False,
        help_text='What all synthetic and generated contexts have: `{"country": "DE"}` makes German users.',
    )
    saved = ListOf(
        child=serializers.CharField(),
        required=False,
        help_text="Names of saved contexts; an example has its.",
    )
    seed = serializers.IntegerField(
        required=False, min_value=0, max_value=2**31 - 1, help_text="Other synthetic users; default 0."
    )


def check_contexts(given: Any) -> Document:
    """What is given as `contexts` elsewhere than in a comparison's body, validated. Raises ValidationError."""
    serializer = ContextsBody(data=given)
    if not serializer.is_valid():
        raise ValidationError.of(problems_of(serializer.errors, PATH))
    return cast("Document", serializer.validated_data)


class GivenContexts:
    """The contexts that a validated body asks for. Raises ValidationError for what it names and is not there.

    ``most`` are as many as there can be: `make` reads the rules of flags for the others.
    """

    def __init__(self, caller: Caller, given: Document) -> None:
        self._given, self._now = given, timezone.now()
        self._fixed = fixed_fields(given["fixed"]) if "fixed" in given else {}
        self.saved: Sequence[SavedContext] = named_contexts(caller, given.get("saved", ()), f"{PATH}.saved")
        self._contexts = [Context(each.context).at(self._now) for each in self.saved]
        if "explicit" in given:
            self._contexts += explicit_contexts(given["explicit"], self._now)
        if "csv" in given:
            self._contexts += csv_contexts(given["csv"], caller, self._now)
        if not (self._contexts or given.get("generated") or given.get("synthetic")):
            raise ValidationError.at(
                PATH, "must have explicit or saved contexts, csv, generated or synthetic ones"
            )

    @property
    def most(self) -> int:
        made = self._given.get("synthetic", 0) + (MAX_GENERATED if self._given.get("generated") else 0)
        return len(self._contexts) + made

    def make(self, read_states: Callable[[], Iterable[Definitions]]) -> list[Context]:
        """The saved contexts first, then those given, then those made from the rules of these flags."""
        given, now = self._given, self._now
        if not (given.get("generated") or given.get("synthetic")):
            return self._contexts
        rules = Rules(read_states())
        made = (
            generated(rules, now=now, limit=MAX_GENERATED, fixed=self._fixed)
            if given.get("generated")
            else []
        )
        if count := given.get("synthetic"):
            made += synthetic(rules, now=now, count=count, seed=given.get("seed", 0), fixed=self._fixed)
        return [*self._contexts, *made]


def explicit_contexts(given: Any, now: PointInTime) -> list[Context]:
    """Contexts as they were sent, read as by the playground. Raises ValidationError."""
    if not isinstance(given, list):
        raise ValidationError.at(f"{PATH}.explicit", f"must be a list of contexts, not {kind_of(given)}")
    _check_number(len(given), "explicit")
    problems: list[Problem] = []
    read = [_read(context, f"explicit[{index}]", problems) for index, context in enumerate(given)]
    check_problems(problems)
    time = time_text(now)
    return [Context.of_strings(document, now=time) for document in read]


def fixed_fields(given: Any) -> Texts:
    """The texts of a context by field. Raises ValidationError."""
    problems: list[Problem] = []
    context = _read(given, "fixed", problems)
    check_problems(problems)
    return Context(context).given


def csv_contexts(text: str, caller: Caller, now: datetime) -> list[Context]:
    """A context for each row. Raises ValidationError with the rows and columns that are wrong."""
    body, time = text.encode(), time_text(now)
    fields = known_fields(revisions(caller.readable_projects))
    try:
        _check_number(UserFile(BytesIO(body)).check(fields), "csv")
    except ValidationError as error:
        raise ValidationError.of(
            replace(each, path=each.path if each.path.startswith(PATH) else f"{PATH}.csv, {each.path}")
            for each in error.details
        ) from None
    return [Context.of_texts(values, now=time) for _, values in UserFile(BytesIO(body)).users()]


def _read(context: Any, place: str, problems: list[Problem]) -> dict[str, Any]:
    found: list[Problem] = []
    read = read_context({"context": context}, found)
    if found:
        path = f"{PATH}.{place}"
        problems += (replace(each, path=path + each.path.removeprefix("context")) for each in found)
    return read


def _check_number(count: int, kind: str) -> None:
    if count > MAX_CONTEXTS:
        message = f"must have at most {MAX_CONTEXTS:,} contexts; this has {count:,}"
        raise ValidationError.at(f"{PATH}.{kind}", message)
