"""Compares the flags that two installations give to an SDK, for many contexts."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

import orjson

from flagadmin.core.errors import join_path
from flagadmin.core.wording import pluralize
from importer.moving.proving.answers import Flags, make_definitions
from importer.moving.proving.proof import Difference, TokenProof
from importer.moving.proving.proof_people import People
from playground.comparison.budget import Budget
from playground.comparison.compare import COUNTED, Change
from playground.comparison.contexts import generate_contexts
from playground.comparison.states import compile_definitions
from playground.comparison.users import make_users
from playground.comparison.who_changes import Contexts, FlagChanges, WhoChanges
from projects.definitions import Definitions, find_unequal

MADE = 2_000
"""Edge cases of the flags that are not written alike."""
AT_ONCE = 100
"""Flags whose results are kept in memory together."""
BUDGET = Budget(seconds=3_600)
SWITCHES = {Change.OFF_TO_ON: "off there, on here", Change.ON_TO_OFF: "on there, off here"}
"""Words of changes that would leave open which installation comes first."""


def compare(
    proof: TokenProof, there: Flags, here: Flags, people: People, left_out: Collection[str] = ()
) -> None:
    """Adds all flags that are not written alike to the proof, but for those that are left out of the move."""
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
    """Counts the users with each change, then the edge cases. Unknown where only an SDK can tell."""
    words = {change: SWITCHES.get(change, change.words) for change in COUNTED}
    users = {change: flag.for_users.count(change) for change in COUNTED}
    cases = {change: flag.for_everyone.count(change) - users[change] for change in COUNTED}
    counted = [f"{number:,} {words[change]}" for change, number in users.items() if number]
    counted += [
        f"{pluralize(number, 'edge case')} {words[change]}" for change, number in cases.items() if number
    ]
    return ", ".join(counted)


def _find_unlike(there: Flags, here: Flags) -> set[str]:
    """Flags that are not written alike, and those that depend on one. All others are the same for everybody."""
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
    """Returns a function that evaluates some of the flags, and returns those that change for somebody."""
    definitions = [make_definitions(side) for side in (there, here)]
    before, after = compile_definitions(environment, *definitions)
    wanted = {
        *names,
        *(p["feature"] for side in (there, here) for name in names for p in _list_parents(side, name)),
    }
    few = [Definitions.of(side.select(wanted).flags, side.segments) for side in definitions]
    # The same users for all flags: what is computed of them is computed once.
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
    """Describes the difference in words: ``strategies[0].parameters.rollout is 50 there and 25 here``"""
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
