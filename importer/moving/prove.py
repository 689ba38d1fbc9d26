"""Compares what each SDK token gets from another installation with what it gets here, for many contexts."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from io import BytesIO
from typing import Any

import orjson
from django.utils import timezone

from flagadmin.core.errors import ValidationError
from groups.models import ApiToken
from groups.tokens import hash_secret
from importer.moving.answers import PATH, SPEC, Client, Flags, make_definitions, read_flags
from importer.moving.keeping import SYSTEM
from importer.moving.proof import Difference, TokenProof
from importer.moving.reading import read_tokens, read_version
from importer.moving.shapes import SourceToken, read_shape
from importer.moving.source import Source, UnexpectedStatus
from importer.moving.tokens import Malformed, read_secrets
from playground.comparison.budget import Budget
from playground.comparison.compare import Change
from playground.comparison.contexts import generate_contexts
from playground.comparison.given_contexts import MAX_CONTEXTS, read_explicit
from playground.comparison.states import compile_definitions
from playground.comparison.users import make_users
from playground.comparison.who_changes import COUNTED, Contexts, FlagChanges, WhoChanges
from playground.engine.context import Context, time_text
from playground.models import SavedContext
from playground.queries import list_known_fields
from playground.user_runs.file import UserFile
from projects.definitions import Definitions
from projects.revision import revisions
from projects.tokens.actions import scope_of
from sdk.features.cache import FeaturesQuery, get_answer

MADE = 2_000
"""Edge cases of the flags that are not written alike."""
MAX_USERS = 100_000
"""Generated ones, and those of a file."""
AT_ONCE = 100
"""Flags whose results are kept in memory together."""
NOT_READABLE = "its secret is not readable there, so it is not compared"
BUDGET = Budget(seconds=3_600)
WORDS = {
    Change.OFF_TO_ON: "off there, on here",
    Change.ON_TO_OFF: "on there, off here",
    Change.VARIANT: "another variant",
    Change.PAYLOAD: "another payload",
    Change.SHARE: "another share of random results",
    Change.UNKNOWN: "only an SDK can tell",
}


def prove(
    source: Source, *, users: int, csv: bytes = b"", projects: Sequence[str] = ()
) -> Iterator[TokenProof]:
    """A proof for each SDK token there, or for those of some projects only.

    ``csv`` are users of one's own, with a header of context fields. Raises SourceError, ValidationError.
    """
    read_version(source)
    seen: dict[bytes, TokenProof] = {}
    now = timezone.now()
    saved = [each.context for each in SavedContext.objects.all()[:MAX_CONTEXTS]]
    people = People([*read_explicit(saved, now), *read_users(csv, now)], users, now)
    tokens = read_tokens(source)
    backends = [token for token in tokens if _is_backend(token)]
    for token, (_, _, new) in zip(tokens, read_secrets(tokens), strict=True):
        if projects and not set(token.projects) <= {*projects}:
            continue
        if isinstance(new, Malformed):
            if token.secure:
                yield TokenProof(token.name, token.environment or "", note=NOT_READABLE)
            continue
        proof = TokenProof(token.name, new.environment or "")
        here = ApiToken.objects.filter(secret_hash=hash_secret(token.secret)).first()
        if here is None or here.is_pending:
            proof.problem = "is not here: its applications would be refused"
        elif (here.kind, here.environment_id) != (new.kind, new.environment):
            proof.problem = f"is a {here.kind} token for {here.environment_id} here"
        elif scope_of(here) != sorted(set(new.projects or ())):
            proof.problem = f"is for {', '.join(scope_of(here)) or 'all projects'} here"
        elif new.kind == ApiToken.Kind.FRONTEND:
            proof.note = _note_on_frontend(token, backends)
        else:
            _prove_token(source, token, here, proof, people, seen)
        yield proof


def _is_backend(token: SourceToken) -> bool:
    return token.type in ("client", "backend")


def _answer_here(token: ApiToken) -> bytes:
    return get_answer(token, FeaturesQuery(knows_segments=True), using="default").body


def _note_on_frontend(token: SourceToken, backends: Iterable[SourceToken]) -> str:
    """The servers evaluate for it: its flags are proven by a token that may read them."""
    for other in backends:
        covers = other.projects == ["*"] or set(token.projects) <= set(other.projects)
        if other.environment == token.environment and covers:
            return f"its flags are compared with token {other.name}"
    return "no backend token reads its flags, so they are not compared"


@dataclass(slots=True)
class People:
    """Those who are compared: saved contexts and users of a file, and generated users."""

    given: list[Context]
    users: int
    now: datetime

    @property
    def count(self) -> int:
        return len(self.given) + self.users


def read_users(csv: bytes, now: datetime) -> list[Context]:
    """A context for each row. Raises ValidationError with the rows and columns that are wrong."""
    if not csv:
        return []
    fields = list_known_fields(revisions(SYSTEM.readable_projects))
    count = UserFile(BytesIO(csv)).check(fields)
    if count > MAX_USERS:
        raise ValidationError.at("users", f"must have at most {MAX_USERS:,} users; this file has {count:,}")
    time = time_text(now)
    return [Context.of_texts(values, now=time) for _, values in UserFile(BytesIO(csv)).users()]


def _prove_token(
    source: Source,
    token: SourceToken,
    here: ApiToken,
    proof: TokenProof,
    people: People,
    seen: dict[bytes, TokenProof],
) -> None:
    """Two answers that were compared before, for another token, are not compared again."""
    try:
        raw = source.get(PATH, token=token.secret, headers=SPEC)
    except UnexpectedStatus as error:
        proof.problem = str(error)
        return
    theirs = read_flags(source.address, read_shape(source.address, PATH, raw, Client))
    ours = read_flags("", Client.model_validate_json(_answer_here(here)))
    key = sha256(orjson.dumps([proof.environment, theirs, ours], option=orjson.OPT_SORT_KEYS)).digest()
    if known := seen.get(key):
        proof.flags, proof.differences, proof.spellings = known.flags, known.differences, known.spellings
    else:
        compare(proof, theirs, ours, people)
        seen[key] = proof


def compare(proof: TokenProof, there: Flags, here: Flags, people: People) -> None:
    """Adds all flags that are not written alike to the proof."""
    proof.flags = len(there.keys() | here.keys())
    names = sorted(_find_unlike(there, here))
    if not names:
        return
    evaluate = _prepare(proof.environment, there, here, names, people)
    for start in range(0, len(names), AT_ONCE):
        part = names[start : start + AT_ONCE]
        found = evaluate(part)
        for name in part:
            difference = Difference(name, _reason(there.get(name), here.get(name)))
            changed = found.get(name)
            if changed is None:
                proof.spellings.append(difference)
            else:
                flag, who = changed
                difference.users, difference.of = flag.users, people.count
                difference.reason += f" ({_count_changes(flag)})"
                difference.example = _example(who, flag)
                proof.differences.append(difference)


def _count_changes(flag: FlagChanges) -> str:
    """By change how many users, or edge cases, get something else. Of what only an SDK can tell, nothing is known."""
    everyone = {change: flag.for_everyone.count(change) for change in COUNTED}
    return ", ".join(f"{number:,} {WORDS[change]}" for change, number in everyone.items() if number)


def _find_unlike(there: Flags, here: Flags) -> set[str]:
    """Flags that are not written alike, and those that depend on one. All others are the same for everybody."""
    unlike = {name for name in there.keys() | here.keys() if there.get(name) != here.get(name)}
    children = {
        name
        for side in (there, here)
        for name, flag in side.items()
        if any(parent["feature"] in unlike for parent in flag["dependencies"])
    }
    return unlike | children


def _prepare(
    environment: str, there: Flags, here: Flags, names: Sequence[str], people: People
) -> Callable[[Sequence[str]], Mapping[str, tuple[FlagChanges, WhoChanges]]]:
    """Returns a function that evaluates some of the flags, and returns those that somebody gets something else of."""
    definitions = [make_definitions(side) for side in (there, here)]
    before, after = compile_definitions(environment, *definitions)
    wanted = {
        *names,
        *(p["feature"] for side in (there, here) for name in names for p in _parents(side, name)),
    }
    few = [
        Definitions.of([flag for flag in side.flags if flag["name"] in wanted], side.segments)
        for side in definitions
    ]
    # The same users for all flags: what is computed of them is computed once.
    users = make_users(few, now=people.now, count=people.users)
    made = generate_contexts(few, now=people.now, limit=MADE)
    contexts = Contexts([*people.given, *users], made=made)

    def evaluate(part: Sequence[str]) -> Mapping[str, tuple[FlagChanges, WhoChanges]]:
        who = WhoChanges(before, after, contexts, part, budget=BUDGET)
        return {flag.name: (flag, who) for flag in who.flags}

    return evaluate


def _parents(side: Flags, name: str) -> list[Any]:
    return side[name]["dependencies"] if name in side else []


def _example(who: WhoChanges, flag: FlagChanges) -> str:
    for example in who.examples(flag, limit=1):
        given = flag.source.table.contexts[example.position].given
        return f"{orjson.dumps(given).decode()}: there {example.before.reason}; here {example.after.reason}"
    return ""


def _reason(there: Mapping[str, Any] | None, here: Mapping[str, Any] | None) -> str:
    """What is not the same, in words: ``strategies[0].parameters.rollout is 50 there and 25 here``"""
    if there is None or here is None:
        return "is not there" if there is None else "is not here"
    found = list(_unlike(there, here, ""))
    more = f" and {len(found) - 3} more" if len(found) > 3 else ""
    return "; ".join(found[:3]) + more if found else "depends on a flag that differs"


def _unlike(there: Any, here: Any, path: str) -> Iterator[str]:
    if isinstance(there, Mapping) and isinstance(here, Mapping):
        for key in dict.fromkeys((*there, *here)):
            yield from _unlike(there.get(key), here.get(key), f"{path}.{key}" if path else key)
    elif isinstance(there, list) and isinstance(here, list) and len(there) == len(here):
        for place, (old, new) in enumerate(zip(there, here, strict=True)):
            yield from _unlike(old, new, f"{path}[{place}]")
    elif there != here:
        old, new = (orjson.dumps(each).decode()[:120] for each in (there, here))
        yield f"{path} is {old} there and {new} here"
