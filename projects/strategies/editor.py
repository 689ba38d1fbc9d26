"""Base class of the pages that edit a flag's strategy or the default strategy of a project environment.

Every button submits the whole form and names its action in ``do``. Only "save" and "delete" write. What would change,
for whom and when stands beside the form, so that saving asks nothing more.

The handle of a rollout: which of the 100 buckets have the flag, and which would get or lose it.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.urls import reverse
from django.utils.functional import cached_property
from django.utils.http import url_has_allowed_host_and_scheme

from flagadmin.core.edit_conflicts.forms import EditConflictMixin
from flagadmin.core.errors import AppError, NotFound, Problem, ValidationError, check_problems
from flagadmin.core.unreadable_values import list_refused_problems
from groups.access import missing
from groups.console import Permission, SubmitPage
from playground.engine.definitions import StrategyDefinition
from playground.engine.strategy_types import STRATEGY_TYPES
from projects.drafts import DraftingPage
from projects.history.field_changes import FieldChange, list_strategy_changes
from projects.models import Environment, Segment, StrategyType
from projects.projects.queries import needs_request
from projects.projects.required_comments import requires_comment
from projects.reverts.change_plan import tell_done
from projects.strategies.constraint_forms import (
    ADD_CONDITION,
    MAX_OFFERED,
    ConstraintFields,
    change_rows,
    clean_constraints,
    list_operator_choices,
)
from projects.strategies.forms import (
    carry_parameters,
    keeps_everyone,
    make_strategy_inputs,
    read_strategy,
    was_left,
)
from projects.strategies.rules import PAYLOAD_TYPES, make_variants
from projects.strategies.sentences import Summary, describe_variants, summarize_strategy
from projects.strategies.variant_forms import change_variants, convert_to_percent


class StrategyEditor(DraftingPage, SubmitPage):
    """``document`` is the strategy as currently in the form, ``stored`` the strategy before editing.

    ``home`` is the URL to redirect to. Editing requires any one of ``permissions``.
    """

    template_name = "strategies/strategy.html"
    restores = True
    passes = (NotFound,)
    shown_by = "post"
    permissions: Sequence[Permission] = (Permission.UPDATE_FEATURE_STRATEGY,)
    may_delete = False
    is_new = False
    is_evaluated = True  # used for evaluation: it can be disabled, and saving it changes results
    project_id: str
    environment: str
    stored: StrategyDefinition
    document: StrategyDefinition
    home: str

    def setup(self, request: HttpRequest, *args: Any, **kwargs: Any) -> None:
        super().setup(request, *args, **kwargs)
        self.problems: list[Problem] = []
        self.refusal: AppError | None = None
        self.opened = ""  # the parameter whose long value the form shows
        self.asking = False  # whether the page asks to confirm the deletion

    def find(self) -> None:
        """Loads the objects that the URL names. Raises NotFound."""
        raise NotImplementedError

    def check(self, document: StrategyDefinition) -> StrategyDefinition:
        """The strategy in stored form. Raises ValidationError with every problem."""
        raise NotImplementedError

    def save(self, document: StrategyDefinition) -> str:
        """Calls the action and returns the success message."""
        raise NotImplementedError

    def remove(self) -> str:
        """Calls the action and returns the success message."""
        raise NotImplementedError

    @property
    def kept(self) -> StrategyDefinition:
        """The strategy whose long values the form refers to."""
        return self.stored

    @property
    def locked(self) -> bool:
        scope = {"project": self.project_id, "environment": self.environment}
        return not any(self.caller.can(permission, **scope) for permission in self.permissions)

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        self.find()
        self.document = self.stored
        return self.render_to_response(self.get_context_data())

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        self.find()
        if request.POST.get("do") == "delete":
            tell_done(request, self.remove(), caller=self.caller)
            return HttpResponseRedirect(self.home)
        self.caller.check_any(self.permissions, project=self.project_id, environment=self.environment)
        self.read()
        do = request.POST.get("do", "save")
        if do != "save":
            self.change_rows(do)
            return self.render_to_response(self.get_context_data())
        self.problems = self.all_problems(self.new_document())
        if self.problems:
            return self.render_to_response(self.get_context_data(), status=400)
        return self.try_to_submit()

    def read(self) -> None:
        self.document, problems = read_strategy(
            self.request.POST, self.project_id, stored=self.stored, kept=self.kept
        )
        self.problems = list_refused_problems(problems)

    def shown(self) -> StrategyDefinition:
        """The strategy as the inputs show it."""
        return self.document

    @property
    def is_deleting(self) -> bool:
        return self.may_delete and self.request.POST.get("do") == "delete"

    def entered(self) -> StrategyDefinition:
        """The strategy after saving the form. Raises ValidationError with its problems."""
        self.read()
        document = self.new_document()
        check_problems(self.all_problems(document))
        return self.check(document)

    def all_problems(self, document: StrategyDefinition) -> list[Problem]:
        """All obstacles to saving: an error in one input does not hide others."""
        problems = list(self.problems)
        try:
            self.check(document)
        except ValidationError as error:
            problems += convert_to_percent(
                error.details or [Problem("", error.message)], self.document["variants"]
            )
        return problems

    def submit(self) -> str:
        tell_done(self.request, self.save(self.new_document()), caller=self.caller)
        return self.get_success_url()

    @cached_property
    def is_production(self) -> bool:
        return Environment.objects.production().filter(name=self.environment).exists()

    @cached_property
    def needs_request(self) -> bool:
        return needs_request(self.project_id, [self.environment])

    def changes(self, document: StrategyDefinition) -> list[FieldChange]:
        """The differences of the form to the stored strategy."""
        stored = self.stored | {"constraints": clean_constraints(self.stored["constraints"])}
        variants = make_variants(document["variants"], self.stored["variants"])
        return list_strategy_changes(stored, document | {"variants": variants})

    def refuse(self, error: AppError) -> HttpResponseBase:
        self.problems, self.refusal = convert_to_percent(error.details, self.document["variants"]), error
        return self.render_to_response(self.get_context_data(), status=error.status)

    def new_document(self) -> StrategyDefinition:
        """The document that saving the form would store."""
        return self.document | {"constraints": clean_constraints(self.document["constraints"])}

    def change_rows(self, do: str) -> None:
        if do == "ask-delete":
            self.asking = True
        elif do.startswith("show-parameter-"):
            self.opened = do.removeprefix("show-parameter-")
        else:
            change_variants(self.document["variants"], do)
            change_rows(self.document["constraints"], do, self.kept["constraints"])

    def get_success_url(self) -> str:
        """The URL of the playground if the user came from there, otherwise ``home``."""
        came = self.request.POST.get("next") or self.request.headers.get("Referer", "")
        address = came.removeprefix(f"{self.request.scheme}://{self.request.get_host()}")
        is_own = url_has_allowed_host_and_scheme(address, allowed_hosts=None)
        return address if is_own and address.startswith(reverse("playground")) else self.home

    def find_problems(self, document: StrategyDefinition) -> list[Problem]:
        """The obstacles to saving, in inputs that the user has filled in."""
        if self.problems or self.refusal or self.request.method != "POST":
            return self.problems
        return [problem for problem in self.all_problems(document) if self.was_left(problem)]

    def was_left(self, problem: Problem) -> bool:
        """Whether the user has filled in the input with the problem.

        Always true without JavaScript.
        """
        left = self.request.POST.get("left")
        return left is None or was_left(problem, left.split("\n"))

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        document = self.new_document()
        inputs = make_strategy_inputs(
            self.project_id,
            self.shown(),
            stored=self.stored,
            kept=self.kept,
            problems=self.find_problems(document),
            opened=self.opened,
            is_new=self.is_new,
        )
        names = {segment.pk: segment.name for segment in inputs.segments}
        return super().get_context_data(
            inputs=inputs,
            summary=summarize_strategy(document, segments=names),
            variants_sentence=describe_variants(make_variants(document["variants"], self.stored["variants"])),
            is_new=self.is_new,
            is_evaluated=self.is_evaluated,
            keeps_everyone=not self.is_new and keeps_everyone(self.stored, document),
            beside=self.request.headers.get("HX-Target") == "preview",
            added=ADD_CONDITION if self.request.POST.get(ADD_CONDITION) else self.request.POST.get("do", ""),
            strip=draw_strip(None if self.is_new else self.stored, document),
            carried=json.dumps(carry_parameters(self.request.POST)),
            refusal=self.refusal if self.refusal and not self.refusal.details else None,
            operators=list_operator_choices(),
            fields=ConstraintFields.of(self.project_id).names[:MAX_OFFERED],
            changes=self.changes(document),
            asking=self.asking,
            comment_required=requires_comment([self.project_id], [self.environment]),
            is_production=self.is_production,
            needs_request=self.needs_request,
            payload_types=PAYLOAD_TYPES,
            environment=self.environment,
            locked=self.why_locked() if self.locked else "",
            may_delete=self.may_delete,
            back=self.get_success_url(),
            **kwargs,
        )

    def get_api_body(self) -> Any:
        return {key: self.stored[key] for key in ("name", "parameters", "constraints", "segments")}

    def why_locked(self) -> str:
        scope = {"project": self.project_id, "environment": self.environment}
        return missing(self.permissions[-1:], **scope).message


class SharedStrategyEditor(EditConflictMixin, StrategyEditor):
    """An editor of a strategy that others may change at the same time."""

    def refuse(self, error: AppError) -> HttpResponseBase:
        self.show_conflict(error)
        return super().refuse(error)

    def list_types(self) -> list[tuple[str, str]]:
        """The selectable types, including the strategy's own."""
        types = dict(list_type_choices())
        types.setdefault(self.document["name"], self.document["name"])
        return list(types.items())


def describe_whole_strategy(document: StrategyDefinition) -> list[Summary | str]:
    """The full description of a stored strategy: its sentence, then title, state and variants."""
    names = Segment.objects.names(document["segments"])
    disabled = "disabled" if document["disabled"] else ""
    texts = (document["title"], disabled, describe_variants(document["variants"]))
    facts = ", ".join(text for text in texts if text)
    summary = summarize_strategy(document, segments=names)
    return [summary, f"({facts})"] if facts else [summary]


def list_type_choices() -> list[tuple[str, str]]:
    """(name, title) of the strategy types that are not deprecated."""
    kinds = StrategyType.objects.filter(deprecated=False)
    return [(kind.name, kind.title or kind.name) for kind in kinds]


class Strip(NamedTuple):
    """Numbers of buckets: those in ``stored`` had the flag, those in ``share`` would have it.

    ``moves``: another stickiness or group deals the users out anew, so that no bucket is the same as before.
    """

    stored: int
    share: int
    moves: bool = False

    @property
    def kept(self) -> int:
        return 0 if self.moves else min(self.stored, self.share)

    @property
    def gained(self) -> int:
        return self.share - self.kept

    @property
    def lost(self) -> int:
        return 0 if self.moves else max(0, self.stored - self.share)

    @property
    def words(self) -> str:
        """``buckets 1 to 10 keep it, 11 to 50 get it``"""
        ends = (("keep", 0, self.kept), ("get", self.kept, self.share), ("lose", self.share, self.stored))
        parts = [f"{begin + 1} to {end} {verb} it" for verb, begin, end in ends if begin < end]
        return f"100 buckets of users: {', '.join(parts) or 'none has it'}"


def draw_strip(stored: StrategyDefinition | None, document: StrategyDefinition) -> Strip | None:
    """None without a percentage that SDKs can read. ``stored`` is None for a strategy that is not stored yet."""
    share = find_percentage(document)
    if share is None:
        return None
    before = find_percentage(stored) if stored else 0
    is_everyone = before == 100 or not before
    moves = not is_everyone and stored is not None and _read_dealing(stored) != _read_dealing(document)
    return Strip(before or 0, share, moves)


def find_percentage(strategy: Mapping[str, Any]) -> int | None:
    """The percentage of a strategy's rollout: 100 for a type that is on for everyone; None for other types."""
    kind = STRATEGY_TYPES.get(strategy["name"])
    if kind is None or (not kind.percentage and kind.parameters):
        return None
    if not kind.percentage:
        return 100
    return None if kind.explain_percentage(strategy["parameters"]) else kind.share(strategy["parameters"])


def _read_dealing(strategy: StrategyDefinition) -> tuple[Any, Any]:
    parameters = strategy["parameters"]
    return parameters.get("stickiness"), parameters.get("groupId")
