"""The form of /playground/who-changes/: two states and the contexts to compare them for, as URL parameters."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import orjson
from django.http import QueryDict

from flagadmin.core.errors import Problem
from playground.comparison.kinds import split_choice
from playground.models import OwnUsers
from playground.pages.form import FormOptions
from playground.pages.kept_contexts import MAX_LENGTH_IN_URL, keep
from playground.pages.query import KEPT, add_offset, format_local_time, read_time
from playground.user_runs.own_users import make_own_contexts

USERS, RULES, JSON, SAVED, OWN = "users", "rules", "json", "saved", "own"
KINDS = {
    OWN: "Your users",
    USERS: "Generated users",
    RULES: "Edge cases",
    SAVED: "Saved contexts",
    JSON: "JSON",
}
MAX_LENGTH_SHOWN = 50_000
"""Characters of JSON that the form shows again. A longer text is kept, and replaced by pasting."""
PLACES = {
    "from.at": "From, at",
    "to.at": "To, at",
    "contexts.synthetic": "Users",
    "contexts.seed": "Seed",
    "contexts.fixed": "All have",
    "contexts.saved": "Saved contexts",
}


@dataclass(slots=True)
class WhoForm:
    """The form as sent. `users`, `seed`, `fixed` and the moments are as entered, "" if not; no moment is now.

    `before` and `after` are environments, or other states (`playground.comparison.kinds.list_state_choices`).
    """

    before: str
    after: str
    before_at: str
    after_at: str
    projects: list[str]
    flag: str
    kind: str
    users: str
    seed: str
    fixed: str
    saved: list[str]
    json: str
    kept: str = ""
    own: OwnUsers | None = None
    problems: list[Problem] = field(default_factory=list)

    @classmethod
    def read(cls, parameters: QueryDict, options: FormOptions, own: OwnUsers | None = None) -> "WhoForm":
        """``own`` are the users that the caller keeps. They are compared if nothing else is said."""
        default = options.default_environment
        other = next((name for name in options.environments if name != default), default)
        default_kind = OWN if own else USERS
        kind = parameters.get("for", default_kind)
        if kind not in KINDS or (kind == OWN and not own):
            kind = default_kind
        return cls(
            before=parameters.get("from", default),
            after=parameters.get("to", other),
            before_at=read_time(parameters, "from-at"),
            after_at=read_time(parameters, "to-at"),
            projects=list(dict.fromkeys(filter(None, parameters.getlist("project")))),
            flag=parameters.get("flag", "").strip(),
            kind=kind,
            own=own,
            users=parameters.get("users", "").strip(),
            seed=parameters.get("seed", "").strip(),
            fixed=parameters.get("fixed", "").strip(),
            saved=list(dict.fromkeys(filter(None, parameters.getlist("saved")))),
            json=parameters.get("json", ""),
            kept=parameters.get(KEPT, ""),
        )

    def keep_if_long(self, caller: Any) -> None:
        if len(self.json) > MAX_LENGTH_IN_URL:
            self.kept = keep(_encode(self.json), caller)

    def pairs(self, *, swapped: bool = False) -> list[tuple[str, str]]:
        """The form as URL parameters, without what the chosen contexts do not need."""
        sides = [(self.before, self.before_at), (self.after, self.after_at)]
        pairs = []
        for side, (environment, at) in zip(("from", "to"), sides[::-1] if swapped else sides, strict=True):
            pairs += [(side, environment), (f"{side}-at", at)]
        pairs += [*(("project", name) for name in self.projects), ("flag", self.flag), ("for", self.kind)]
        if self.kind == USERS:
            pairs += [("users", self.users), ("seed", self.seed), ("fixed", self.fixed)]
        elif self.kind == SAVED:
            pairs += [("saved", name) for name in self.saved]
        elif self.kind == JSON:
            pairs.append((KEPT, self.kept) if self.kept else ("json", self.json))
        return [(name, text) for name, text in pairs if text]

    @property
    def times(self) -> list[str]:
        """The moments as a browser's time inputs take them."""
        return [format_local_time(add_offset(at)) or at for at in (self.before_at, self.after_at)]

    @property
    def has_more(self) -> bool:
        """Whether it says what most leave out."""
        return bool(
            self.before_at or self.after_at or self.projects or self.users or self.seed or self.fixed
            or self.problems
        )  # fmt: skip

    @property
    def is_long(self) -> bool:
        return len(self.json) > MAX_LENGTH_SHOWN

    @property
    def kinds(self) -> list[tuple[str, str, bool]]:
        kinds = KINDS | ({OWN: f"Users of {self.own.file_name}"} if self.own else {})
        return [(value, kinds[value], value == self.kind) for value in kinds if value != OWN or self.own]

    def body(self, *, users: int, saved: list[str]) -> dict[str, Any]:
        """The body of the same request to the API. ``users``, ``saved``: for a form that does not say."""
        return {
            "from": _make_state(self.before, self.before_at),
            "to": _make_state(self.after, self.after_at),
            **({"projects": self.projects} if self.projects else {}),
            **({"flag": self.flag} if self.flag else {}),
            "contexts": self._make_contexts(users, saved),
        }

    def _make_contexts(self, users: int, saved: list[str]) -> dict[str, Any]:
        if self.kind == OWN and self.own:
            return {"explicit": [{"properties": each.fields} for each in make_own_contexts(self.own, users)]}
        if self.kind == RULES:
            return {"generated": True}
        if self.kind == SAVED:
            return {"saved": self.saved or saved}
        if self.kind == JSON:
            return {"explicit": self._list_explicit()}
        return {
            "synthetic": self.users or users,
            "fixed": dict(self._split_fixed_fields()),
            **({"seed": self.seed} if self.seed else {}),
        }

    def _split_fixed_fields(self) -> Iterator[tuple[str, str]]:
        """Yields the names and values of, for example, `country=DE, plan=pro`."""
        for pair in filter(None, map(str.strip, self.fixed.split(","))):
            name, equals, value = map(str.strip, pair.partition("="))
            if not (name and equals):
                problem = f"must be like country=DE, plan=pro, not {pair[:100]}"
                self.problems.append(Problem("contexts.fixed", problem))
            yield name, value

    def _list_explicit(self) -> Any:
        if not self.json:
            missing = "The contexts of this link are no longer stored. Paste them again."
            self.problems.append(Problem("", missing if self.kept else "Paste a list of contexts as JSON."))
            return []
        try:
            read = orjson.loads(self.json)
        except orjson.JSONDecodeError as error:
            message = f"Invalid JSON (line {error.lineno}, column {error.colno}): {error.msg}."
            self.problems.append(Problem("", message))
            return []
        return [read] if isinstance(read, dict) else read

    def _name_state(self, path: str) -> str:
        """Returns the form's label for what was chosen as a state; other paths are for those who pasted JSON."""
        chosen = {"from": ("From", self.before), "to": ("To", self.after)}
        for side, (label, state) in chosen.items():
            if path in (f"{side}.environment", f"{side}.{split_choice(state)[0]}"):
                return label
        return path.replace("contexts.explicit", "JSON")

    @property
    def messages(self) -> Iterator[str]:
        for problem in self.problems:
            label = PLACES.get(problem.path) or self._name_state(problem.path)
            yield f"{label}: {problem.message}" if label else problem.message


def _make_state(chosen: str, at: str) -> dict[str, str]:
    member, value = split_choice(chosen)
    return {member: value} | ({"at": at} if at else {})


def _encode(text: str) -> str:
    encoded = QueryDict(mutable=True)
    encoded["json"] = text
    return encoded.urlencode()
