"""Generated states of flags: environments, parents, strategies with segments and variants, archived ones."""

from typing import Any

from hypothesis import strategies as st

from projects.states import FlagState, in_order

ENVIRONMENTS = ("development", "production", "staging")
VARIANTS = st.lists(
    st.fixed_dictionaries({"name": st.sampled_from("xyz"), "weight": st.sampled_from([0, 500, 1000])}),
    max_size=2,
)
STRATEGY: st.SearchStrategy[Any] = st.fixed_dictionaries(
    {
        "name": st.sampled_from(["flexibleRollout", "default", "userWithId"]),
        "title": st.sampled_from([None, "Beta"]),
        "disabled": st.booleans(),
        "sortOrder": st.integers(0, 4),
        "parameters": st.dictionaries(st.just("rollout"), st.sampled_from(["10", "50"])),
        "constraints": st.lists(st.fixed_dictionaries({"contextName": st.sampled_from("ab")}), max_size=1),
        "segments": st.lists(st.sampled_from([1, 2]), unique=True, max_size=2),
        "variants": VARIANTS,
    }
)
PARENT = st.fixed_dictionaries(
    {"enabled": st.booleans(), "variants": st.lists(st.sampled_from("xy"), unique=True, max_size=1)}
)


@st.composite
def places(draw: st.DrawFn) -> Any:
    ids = draw(st.lists(st.sampled_from("abcdef"), unique=True, max_size=4))
    return {
        "enabled": draw(st.booleans()),
        "variants": draw(VARIANTS),
        "strategies": in_order(draw(STRATEGY) | {"id": key} for key in ids),
    }


@st.composite
def flags(draw: st.DrawFn) -> FlagState:
    names = sorted(draw(st.sets(st.sampled_from(ENVIRONMENTS))))
    parents = draw(st.lists(st.sampled_from("pqr"), unique=True))
    state: Any = {
        "name": "cart",
        "project": "default",
        "archived": draw(st.booleans()),
        "description": draw(st.sampled_from([None, "The cart"])),
        "type": draw(st.sampled_from(["release", "kill-switch"])),
        "owner": draw(st.sampled_from([None, {"kind": "group", "id": 1, "name": "Team"}])),
        "stale": draw(st.booleans()),
        "impressionData": draw(st.booleans()),
        "dependencies": [{"feature": parent, **draw(PARENT)} for parent in parents],
        "environments": [{"name": name, **draw(places())} for name in names],
    }
    return state
