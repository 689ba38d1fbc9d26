"""Compares each SDK token's results from another installation with those here, for many contexts."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

import orjson
from django.utils import timezone

from flagadmin.core.errors import join_path, pluralize
from groups.models import ApiToken
from groups.tokens import hash_secret
from importer.moving.leave_out import Choice, MissingParts
from importer.moving.proving.answers import (
    PATH,
    SPEC,
    Client,
    Difference,
    Flags,
    People,
    TokenProof,
    make_definitions,
    read_flags,
    read_flags_here,
    read_users,
)
from importer.moving.proving.prove_frontend import prove_frontend
from importer.moving.reading.read import read_tokens, read_version
from importer.moving.reading.shapes import SourceToken, read_shape
from importer.moving.reading.source import Source, UnexpectedStatus
from importer.moving.writing.settings import Malformed, NewToken, read_token
from playground.comparison.compare import COUNTED, Change
from playground.comparison.contexts import generate_contexts
from playground.comparison.given_contexts import MAX_CONTEXTS, read_explicit
from playground.comparison.states import compile_definitions
from playground.comparison.users import make_users
from playground.comparison.who_changes import Budget, Contexts, FlagChanges, WhoChanges
from playground.models import SavedContext
from projects.definitions import Definitions, find_unequal
from projects.tokens.actions import read_scope

NOT_READABLE = "its secret is not readable there, so it is not compared"

NO_ALIAS = "is not here: applications that use it would be refused"


def prove(
    source: Source,
    *,
    users: int,
    csv: bytes = b"",
    projects: Sequence[str] = (),
    left_out: Sequence[Choice] = (),
) -> Iterator[TokenProof]:
    """Yields a proof for each SDK token there, or for the tokens of some projects only.

    ``csv`` has the user's own contexts, with a header of context fields. Does not compare flags ``left_out`` of the
    move. Raises SourceError, ValidationError.
    """
    read_version(source)
    now = timezone.now()
    saved = [each.context for each in SavedContext.objects.all()[:MAX_CONTEXTS]]
    people = People([*read_explicit(saved, now), *read_users(csv, now)], users, now)
    tokens = read_tokens(source)
    backends = [token for token in tokens if token.type in ("client", "backend")]
    prover = _Prover(source, people, MissingParts(left_out), backends)
    # Backend tokens first: they show which flags are left out, and the flags of frontend tokens.
    for token, new in sorted(zip(tokens, map(read_token, tokens), strict=True), key=_is_for_frontends):
        if projects and not set(token.projects) <= {*projects}:
            continue
        source.begin(f"Comparing what token {token.name} gets")
        if not isinstance(new, Malformed):
            yield prover.prove(token, new)
            if token.alias and not ApiToken.objects.filter(secret_hash=hash_secret(token.alias)).exists():
                yield TokenProof(f"alias of {token.name}", new.environment or "", note=NO_ALIAS)
        elif token.secure:
            yield TokenProof(token.name, token.environment or "", note=NOT_READABLE)


def _is_for_frontends(pair: tuple[SourceToken, NewToken | Malformed]) -> bool:
    return isinstance(pair[1], NewToken) and pair[1].kind == ApiToken.Kind.FRONTEND


@dataclass
class _Prover:
    source: Source
    people: People
    missing: MissingParts
    backends: Sequence[SourceToken]
    seen: dict[bytes, TokenProof] = field(default_factory=dict)
    frontends: dict[tuple[str, ...], TokenProof] = field(default_factory=dict)
    """Proofs of frontend tokens, by the environment and projects of a token."""
    left_out: set[str] = field(default_factory=set)

    def prove(self, token: SourceToken, new: NewToken) -> TokenProof:
        proof = TokenProof(token.name, new.environment or "")
        here = ApiToken.objects.filter(secret_hash=hash_secret(token.secret)).first()
        if self.missing.has_token(proof.environment, token.projects):
            proof.note = "is left out with its environment or projects"
        elif here is None or here.is_pending:
            proof.problem = "is not here: its applications would be refused"
        elif (here.kind, here.environment_id) != (new.kind, new.environment):
            proof.problem = f"is a {here.kind} token for {here.environment_id} here"
        elif read_scope(here) != sorted(set(new.projects or ())):
            proof.problem = f"is for {', '.join(read_scope(here)) or 'all projects'} here"
        else:
            work = self._prove_frontend if new.kind == ApiToken.Kind.FRONTEND else self._prove_backend
            try:
                work(token, here, proof)
            except UnexpectedStatus as error:
                proof.problem = str(error)
        return proof

    def _prove_backend(self, token: SourceToken, here: ApiToken, proof: TokenProof) -> None:
        """Does not repeat the comparison of two answers already compared for another token."""
        raw = self.source.get(PATH, token=token.secret, headers=SPEC)
        theirs = read_flags(self.source.address, read_shape(self.source.address, PATH, raw, Client))
        ours = read_flags_here(here)
        left_out = self.missing.find_among(theirs, ours)
        self.left_out |= left_out
        key = sha256(orjson.dumps([proof.environment, theirs, ours], option=orjson.OPT_SORT_KEYS)).digest()
        if (known := self.seen.get(key)) is None:
            compare(proof, theirs, ours, self.people, left_out)
            self.seen[key] = proof
        else:
            proof.take_results(known)

    def _prove_frontend(self, token: SourceToken, here: ApiToken, proof: TokenProof) -> None:
        """Two tokens with the same scope get the same proof."""
        key = proof.environment, *sorted(token.projects)
        if (known := self.frontends.get(key)) is None:
            try:
                prove_frontend(self.source, token, here, proof, self.people, self.left_out)
            except UnexpectedStatus as error:
                if error.answered != 404:
                    raise
                proof.note = f"the other server has no frontend API; {self._name_backend(token)}"
            self.frontends[key] = proof
        else:
            proof.take_results(known)
            proof.note = known.note

    def _name_backend(self, token: SourceToken) -> str:
        for other in self.backends:
            covers = other.projects == ["*"] or {*token.projects} <= {*other.projects}
            if other.environment == token.environment and covers:
                return f"its flags are compared with token {other.name}"
        return "no backend token reads its flags, so they are not compared"


MADE = 2_000
"""Edge cases of flags whose definitions differ."""
AT_ONCE = 100
"""Flags whose results are in memory at a time."""
BUDGET = Budget(seconds=3_600)
SWITCHES = {Change.OFF_TO_ON: "off there, on here", Change.ON_TO_OFF: "on there, off here"}
"""Wordings for changes that would not show which installation comes first."""


def compare(
    proof: TokenProof, there: Flags, here: Flags, people: People, left_out: Collection[str] = ()
) -> None:
    """Adds all flags with different definitions to the proof, except those left out of the move."""
    proof.left_out = sorted(left_out)
    proof.flags = len((there.keys() | here.keys()) - {*left_out})
    names = sorted(_find_unlike(there, here) - {*left_out})
    if not names:
        return
    evaluate = _prepare(proof.environment, there, here, names, people)
    for start in range(0, len(names), AT_ONCE):
        part = names[start : start + AT_ONCE]
        changes = evaluate(part)
        for name in part:
            difference = Difference(name, _find_reason(there.get(name), here.get(name)))
            changed = changes.get(name)
            if changed is None:
                proof.spellings.append(difference)
            else:
                flag, who = changed
                difference.users, difference.of = flag.users, people.count
                difference.reason += f" ({_count_changes(flag)})"
                difference.example = _make_example(who, flag)
                proof.differences.append(difference)


def _count_changes(flag: FlagChanges) -> str:
    """Counts the users with each change, then the edge cases. Unknown if only an SDK can tell."""
    words = {change: SWITCHES.get(change, change.words) for change in COUNTED}
    users = {change: flag.for_users.count(change) for change in COUNTED}
    cases = {change: flag.for_everyone.count(change) - users[change] for change in COUNTED}
    counted = [f"{number:,} {words[change]}" for change, number in users.items() if number]
    counted += [
        f"{pluralize(number, 'edge case')} {words[change]}" for change, number in cases.items() if number
    ]
    return ", ".join(counted)


def _find_unlike(there: Flags, here: Flags) -> set[str]:
    """Flags with different definitions, and their dependents. All others have the same results."""
    unlike = find_unequal(there, here)
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
    """Makes a function that evaluates some of the flags and returns those with changes."""
    definitions = [make_definitions(side) for side in (there, here)]
    before, after = compile_definitions(environment, *definitions)
    wanted = {
        *names,
        *(p["feature"] for side in (there, here) for name in names for p in _list_parents(side, name)),
    }
    few = [Definitions.of(side.select(wanted).flags, side.segments) for side in definitions]
    # The same users for all flags, so that values are computed once.
    users = make_users(few, now=people.now, count=people.users)
    made = generate_contexts(few, now=people.now, limit=MADE)
    contexts = Contexts([*people.explicit, *users], made=made)

    def evaluate(part: Sequence[str]) -> Mapping[str, tuple[FlagChanges, WhoChanges]]:
        who = WhoChanges(before, after, contexts, part, budget=BUDGET)
        return {flag.name: (flag, who) for flag in who.flags}

    return evaluate


def _list_parents(side: Flags, name: str) -> list[Any]:
    return side[name]["dependencies"] if name in side else []


def _make_example(who: WhoChanges, flag: FlagChanges) -> str:
    for example in who.examples(flag, limit=1):
        fields = flag.source.table.contexts[example.position].fields
        return f"{orjson.dumps(fields).decode()}: there {example.before.reason}; here {example.after.reason}"
    return ""


def _find_reason(there: Mapping[str, Any] | None, here: Mapping[str, Any] | None) -> str:
    """Describes the difference: ``strategies[0].parameters.rollout is 50 there and 25 here``"""
    if there is None or here is None:
        return "is not there" if there is None else "is not here"
    reasons = list(_unlike(there, here, ""))
    more = f" and {len(reasons) - 3} more" if len(reasons) > 3 else ""
    return "; ".join(reasons[:3]) + more if reasons else "depends on a flag that differs"


def _unlike(there: Any, here: Any, path: str) -> Iterator[str]:
    if isinstance(there, Mapping) and isinstance(here, Mapping):
        for key in dict.fromkeys((*there, *here)):
            yield from _unlike(there.get(key), here.get(key), join_path(path, key))
    elif isinstance(there, list) and isinstance(here, list) and len(there) == len(here):
        for place, (old, new) in enumerate(zip(there, here, strict=True)):
            yield from _unlike(old, new, f"{path}[{place}]")
    elif there != here:
        old, new = (orjson.dumps(each).decode()[:120] for each in (there, here))
        yield f"{path} is {old} there and {new} here"
