"""The contexts of a comparison: explicit, saved, from a CSV file, edge cases and generated users."""

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
from flagadmin.core.http.fields import BoundedTexts
from groups.access import Caller
from playground.comparison.contexts import Texts, generate_contexts
from playground.comparison.users import GeneratedUsers
from playground.comparison.who_changes import Contexts
from playground.context_body import describe_kind, read_context
from playground.engine.context import Context, PointInTime, format_time
from playground.models import SavedContext
from playground.queries import list_known_fields
from playground.saved_contexts.queries import get_named_contexts
from playground.user_runs.file import MAX_HELD_CELLS, UserFile
from projects.definitions import Definitions
from projects.revision import read_revisions
from projects.serializers import StrictSerializer

MAX_CONTEXTS = 10_000
MAX_GENERATED = 1_000
MAX_RULES = 500
"""Flags whose rules make edge cases, the first by name: reading the rules of one takes a millisecond."""
MAX_NAMED = 5_000
"""Flags that supply values for generated users, the first by name."""
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
    """A list of contexts; `read_explicit` reads them."""

    def to_internal_value(self, data: Any) -> Any:
        """The value as parsed. JSONField would serialize it as a check."""
        return data


@extend_schema_field({"$ref": "#/components/schemas/EvaluationContextRequest"})
class FixedFields(serializers.JSONField):
    """A context; `read_fixed_fields` reads it."""


class ContextsBody(StrictSerializer):
    explicit = ExplicitContexts(required=False, help_text="Contexts as the playground takes them.")
    csv = serializers.CharField(
        required=False,
        trim_whitespace=False,
        max_length=settings.COMPARE_BODY_LIMIT,
        help_text="Contexts as CSV: a header of context fields, and a row for each context.",
    )
    generated = serializers.BooleanField(
        required=False, help_text="Edge cases: contexts that meet and miss every condition of the flags."
    )
    synthetic = serializers.IntegerField(
        required=False,
        min_value=1,
        max_value=MAX_CONTEXTS,
        help_text="Generated users with ids of their own, and values that the flag at hand names in other fields.",
    )
    fixed = FixedFields(
        required=False,
        help_text='What all generated contexts and users have: `{"country": "DE"}` makes German users.',
    )
    saved = BoundedTexts(
        required=False,
        help_text="Names of saved contexts; an example has its.",
    )
    seed = serializers.IntegerField(
        required=False, min_value=0, max_value=2**31 - 1, help_text="Other generated users; default 0."
    )


def check_contexts(body: Any) -> Document:
    """Validates `contexts` outside a comparison's body. Raises ValidationError."""
    serializer = ContextsBody(data=body)
    if not serializer.is_valid():
        raise ValidationError.of(problems_of(serializer.errors, PATH))
    return cast("Document", serializer.validated_data)


class GivenContexts:
    """The contexts of a validated body. Raises ValidationError for unknown names.

    `most` is their maximum number: `make` reads the rules of flags to generate the others.
    """

    def __init__(self, caller: Caller, body: Document) -> None:
        self._given, self._now = body, timezone.now()
        self._fixed = read_fixed_fields(body["fixed"]) if "fixed" in body else {}
        self.saved: Sequence[SavedContext] = get_named_contexts(
            caller, body.get("saved", ()), f"{PATH}.saved"
        )
        self._contexts = [Context(saved.context).at(self._now) for saved in self.saved]
        if "explicit" in body:
            self._contexts += read_explicit(body["explicit"], self._now)
        if "csv" in body:
            self._contexts += read_csv(body["csv"], caller, self._now)
        if not (self._contexts or body.get("generated") or body.get("synthetic")):
            raise ValidationError.at(
                PATH, "must have explicit or saved contexts, csv, generated or synthetic ones"
            )

    @property
    def most(self) -> int:
        generated = self._given.get("synthetic", 0) + (MAX_GENERATED if self._given.get("generated") else 0)
        return len(self._contexts) + generated

    def make(self, read_states: Callable[[int], Iterable[Definitions]]) -> Contexts:
        """The saved contexts first, then the given ones, then edge cases and users generated from the first flags,
        whose definitions ``read_states`` reads.
        """
        body, now, count = self._given, self._now, self._given.get("synthetic", 0)
        if not (body.get("generated") or count):
            return Contexts(self._contexts)
        contexts = self._contexts
        if body.get("generated"):
            states = read_states(MAX_RULES)
            contexts = [
                *contexts,
                *generate_contexts(states, now=now, limit=MAX_GENERATED, fixed=self._fixed),
            ]
        if not count:
            return Contexts(contexts)
        users = GeneratedUsers(now=now, count=count, seed=body.get("seed", 0), fixed=self._fixed)
        return Contexts(contexts, generated=users, states=list(read_states(MAX_NAMED)))


def read_explicit(contexts: Any, now: PointInTime) -> list[Context]:
    """Reads the sent contexts as the playground does. Raises ValidationError."""
    if not isinstance(contexts, list):
        raise ValidationError.at(
            f"{PATH}.explicit", f"must be a list of contexts, not {describe_kind(contexts)}"
        )
    if len(contexts) > MAX_CONTEXTS:
        message = f"must have at most {MAX_CONTEXTS:,} contexts; this has {len(contexts):,}"
        raise ValidationError.at(f"{PATH}.explicit", message)
    problems: list[Problem] = []
    documents = [_read(context, f"explicit[{index}]", problems) for index, context in enumerate(contexts)]
    check_problems(problems)
    time = format_time(now)
    return [Context.of_strings(document, now=time) for document in documents]


def read_fixed_fields(document: Any) -> Texts:
    """The texts of a context by field. Raises ValidationError."""
    problems: list[Problem] = []
    context = _read(document, "fixed", problems)
    check_problems(problems)
    return Context(context).fields


def read_csv(text: str, caller: Caller, now: datetime) -> list[Context]:
    """A context for each row. Raises ValidationError with the rows and columns of the problems."""
    body, time = text.encode(), format_time(now)
    fields = list_known_fields(read_revisions(caller.readable_projects))
    try:
        UserFile(BytesIO(body)).check(fields, rows=MAX_CONTEXTS, cells=MAX_HELD_CELLS, called="contexts")
    except ValidationError as error:
        raise ValidationError.of(
            replace(problem, path=f"{PATH}.csv, {problem.path}".removesuffix(", file"))
            for problem in error.details
        ) from None
    return [Context.of_texts(values, now=time) for _, values in UserFile(BytesIO(body)).users()]


def _read(context: Any, location: str, problems: list[Problem]) -> dict[str, Any]:
    own_problems: list[Problem] = []
    document = read_context({"context": context}, own_problems)
    if own_problems:
        path = f"{PATH}.{location}"
        problems += (
            replace(problem, path=path + problem.path.removeprefix("context")) for problem in own_problems
        )
    return document
