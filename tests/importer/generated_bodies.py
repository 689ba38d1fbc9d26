"""Generated import bodies: valid ones of every part, and the same with something broken in them."""

import copy
from typing import Any

from hypothesis import strategies as st

NAMES = ("one", "two", "three", "old", "elsewhere", "kept", "apple pay", "")
NAME = st.sampled_from(("one", "two", "three", "kept"))
TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=8)
JUNK = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False, allow_infinity=False),
    TEXT,
    st.sampled_from(
        ("true", "1", "1e999", "\x00", "2020-13-01T00:00:00Z", "0001-01-01T00:00:00+14:00", *NAMES)
    ),
    st.lists(st.integers(0, 3), max_size=2),
    st.dictionaries(TEXT, st.none(), max_size=2),
)


def _objects(required: dict[str, Any], **optional: Any) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(required, optional=optional)


VARIANT = _objects(
    {
        "name": st.sampled_from(("a", "b", "c")),
        "weight": st.integers(0, 1000),
        "weightType": st.sampled_from(("variable", "variable", "fix")),
        "stickiness": st.just("default"),
    },
    payload=_objects(
        {"type": st.sampled_from(("json", "string", "number")), "value": st.sampled_from(("1", "x"))}
    ),
)
CONSTRAINT = st.one_of(
    _objects(
        {
            "contextName": st.sampled_from(("userId", "plan")),
            "operator": st.sampled_from(("IN", "NOT_IN", "STR_CONTAINS")),
            "values": st.lists(st.sampled_from(("gold", "silver", 7)), min_size=1, max_size=2),
        },
        inverted=st.booleans(),
    ),
    _objects(
        {
            "contextName": st.just("age"),
            "operator": st.sampled_from(("NUM_GT", "SEMVER_EQ", "DATE_AFTER", "REGEX")),
            "value": st.sampled_from(("5", "1.2.3", "2026-01-01T00:00:00Z", "a+")),
        }
    ),
)
STRATEGY = _objects(
    {"name": st.sampled_from(("flexibleRollout", "default")), "featureName": NAME},
    title=st.one_of(st.none(), TEXT),
    disabled=st.booleans(),
    sortOrder=st.integers(0, 3),
    parameters=st.fixed_dictionaries({"rollout": st.sampled_from(("50", 50))}),
    constraints=st.lists(CONSTRAINT, max_size=2),
    variants=st.lists(VARIANT, max_size=2, unique_by=lambda v: v["name"]),
    segments=st.lists(st.sampled_from((7, 8)), max_size=2, unique=True),
)
PARENT = _objects({"feature": NAME}, enabled=st.booleans(), variants=st.lists(st.just("a"), max_size=1))
FEATURE = _objects(
    {"name": NAME},
    type=st.sampled_from(("release", "experiment")),
    description=st.one_of(st.none(), TEXT),
    archived=st.sampled_from((False, False, True)),
    enabled=st.booleans(),
    stale=st.booleans(),
    createdAt=st.sampled_from((None, "2020-01-01T00:00:00Z")),
    lifecycle=_objects({"stage": st.just("live"), "enteredStageAt": st.just("2020-01-02T00:00:00Z")}),
    tags=st.lists(
        _objects({"type": st.just("simple"), "value": st.sampled_from(("tag", "top"))}), max_size=1
    ),
    dependencies=st.lists(PARENT, max_size=1),
    variants=st.lists(VARIANT, max_size=1),
)
SWITCH = _objects({"name": NAME, "enabled": st.booleans()}, variants=st.lists(VARIANT, max_size=1))
DATA = _objects(
    {
        "features": st.lists(FEATURE, max_size=3, unique_by=lambda f: f["name"]),
        "featureStrategies": st.lists(STRATEGY, max_size=3),
        "tagTypes": st.lists(_objects({"name": st.sampled_from(("team", "simple"))}), max_size=2),
    },
    featureEnvironments=st.lists(SWITCH, max_size=2, unique_by=lambda e: e["name"]),
    featureTags=st.lists(
        _objects(
            {"featureName": NAME, "tagType": st.sampled_from(("team", "simple")), "tagValue": st.just("x1")}
        ),
        max_size=2,
    ),
    contextFields=st.lists(
        _objects({"name": st.just("plan"), "legalValues": st.just([{"value": "gold"}, {"value": "silver"}])}),
        max_size=1,
    ),
    segments=st.lists(
        _objects(
            {"id": st.sampled_from((7, 8)), "name": st.sampled_from(("here", "new"))},
            constraints=st.lists(CONSTRAINT, max_size=1),
        ),
        max_size=2,
        unique_by=(lambda s: s["id"], lambda s: s["name"]),
    ),
    dependencies=st.lists(
        _objects({"feature": NAME, "dependencies": st.lists(PARENT, max_size=2)}), max_size=1
    ),
    links=st.lists(
        _objects(
            {
                "feature": NAME,
                "links": st.lists(_objects({"url": st.sampled_from(("example.com", "://"))}), max_size=1),
            }
        ),
        max_size=1,
    ),
)
BODIES = st.fixed_dictionaries(
    {"project": st.just("shop"), "environment": st.just("development"), "data": DATA}
)


def _places(value: Any) -> list[tuple[Any, Any]]:
    """Every (container, key) in a document."""
    keys = value.keys() if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    places = [(value, key) for key in keys]
    return places + [place for key in keys for place in _places(value[key])]


@st.composite
def mutated_bodies(draw: Any) -> Any:
    """A valid body in which up to three members are replaced, removed, renamed or repeated."""
    body = copy.deepcopy(draw(BODIES))
    for _ in range(draw(st.integers(1, 3))):
        places = _places(body)
        if not places:
            break
        container, key = draw(st.sampled_from(places))
        how = draw(st.sampled_from(("replace", "remove", "rename", "repeat")))
        if how == "replace":
            container[key] = draw(JUNK)
        elif how == "remove":
            del container[key]
        elif isinstance(container, dict):
            container[draw(TEXT)] = container.pop(key) if how == "rename" else copy.deepcopy(container[key])
        else:
            container.append(copy.deepcopy(container[key]))
    return body
