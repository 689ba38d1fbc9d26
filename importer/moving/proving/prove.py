"""Compares what each SDK token gets from another installation with what it gets here, for many contexts."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import sha256

import orjson
from django.utils import timezone

from groups.models import ApiToken
from groups.tokens import hash_secret
from importer.moving.leave_out import Choice, MissingParts
from importer.moving.proving.answers import PATH, SPEC, Client, read_flags, read_flags_here
from importer.moving.proving.proof import TokenProof
from importer.moving.proving.proof_people import People, read_users
from importer.moving.proving.prove_frontend import prove_frontend
from importer.moving.proving.unlike_flags import compare
from importer.moving.reading.read import read_tokens, read_version
from importer.moving.reading.shapes import SourceToken, read_shape
from importer.moving.reading.source import Source, UnexpectedStatus
from importer.moving.writing.tokens import Malformed, NewToken, read_token
from playground.comparison.given_contexts import MAX_CONTEXTS, read_explicit
from playground.models import SavedContext
from projects.tokens.actions import read_scope

NOT_READABLE = "its secret is not readable there, so it is not compared"


def prove(
    source: Source,
    *,
    users: int,
    csv: bytes = b"",
    projects: Sequence[str] = (),
    left_out: Sequence[Choice] = (),
) -> Iterator[TokenProof]:
    """Returns a proof for each SDK token there, or for those of some projects only.

    ``csv`` are users of one's own, with a header of context fields. Anything ``left_out`` of the move is not compared.
    Raises SourceError, ValidationError.
    """
    read_version(source)
    now = timezone.now()
    saved = [each.context for each in SavedContext.objects.all()[:MAX_CONTEXTS]]
    people = People([*read_explicit(saved, now), *read_users(csv, now)], users, now)
    tokens = read_tokens(source)
    backends = [token for token in tokens if token.type in ("client", "backend")]
    prover = _Prover(source, people, MissingParts(left_out), backends)
    # Backend tokens first: they tell which flags are left out, and what frontend tokens get.
    for token, new in sorted(zip(tokens, map(read_token, tokens), strict=True), key=_is_for_frontends):
        if projects and not set(token.projects) <= {*projects}:
            continue
        if not isinstance(new, Malformed):
            yield prover.prove(token, new)
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
        """Two answers that were compared before, for another token, are not compared again."""
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
        """Two tokens for the same get the same."""
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
