"""What is predicted of a request is what applying it leaves, for random changes with every action there is."""

from typing import Any

import pytest
from django.db import transaction
from django.utils import timezone

from flagadmin.core.errors import NotFound, ValidationError
from groups.access import Caller
from projects.definitions import Definitions, read_definitions
from projects.models import Dependency, Flag, ProjectEnvironment, Segment, Strategy
from releases.changes import KINDS
from releases.derive import ProposedChange, find_differing
from releases.models import ChangeRequest
from releases.requests.impact import measure_request, predict_request
from releases.requests.propose import add_changes
from releases.requests.states import set_state
from tests.support.cast import make_user
from tests.support.examples import examples
from tests.support.playground import live_flag
from tests.support.random_changes import NAMES, RandomChanges

FLAGS = NAMES[:5]


@pytest.fixture
def flags(shop: Any) -> None:
    """Five flags in production, three of them on, some with segments, disabled strategies and parents."""
    for number in range(2):
        Segment.objects.create(name=f"segment-{number}", constraints=[])
    used = Segment.objects.get(name="segment-0")
    for number, name in enumerate(FLAGS):
        strategies: list[dict[str, Any]] = [
            {"name": "flexibleRollout", "parameters": {"rollout": f"{20 * number}"}, "sort_order": 0},
            {"name": "default", "segments": [used], "disabled": number == 2, "sort_order": 1},
        ]
        live_flag(name, enabled=number < 3, strategies=strategies)
    child, parent = (Flag.objects.get(name=name) for name in (FLAGS[4], FLAGS[3]))
    Dependency.objects.create(flag=child, parent=parent)
    ProjectEnvironment.objects.filter(environment="production").update(required_approvals=0)


class Proposals(RandomChanges):
    def propose(self, action: str) -> ProposedChange:
        name = "" if KINDS[action].of_segment else self.random.choice(FLAGS)
        return ProposedChange(name, action, self.payload(action, name))

    def payload(self, action: str, name: str) -> Any:
        ids = [
            str(key)
            for key in Strategy.objects.filter(flag__name=name, environment="production")
            .order_by("sort_order", "pk")
            .values_list("pk", flat=True)
        ]
        # No two in one place, where the new one's id, which nobody knows, would decide.
        strategy = self.strategy() | {"sortOrder": None}
        new = {key: value for key, value in strategy.items() if value is not None}
        return {
            "updateEnabled": lambda: {
                "enabled": self.random.random() < 0.6,
                "shouldActivateDisabledStrategies": self.random.random() < 0.5,
            },
            "addStrategy": lambda: new,
            "updateStrategy": lambda: {"id": self.random.choice(ids), **new},
            "deleteStrategy": lambda: {"id": self.random.choice(ids)},
            "reorderStrategy": lambda: [
                {"id": key, "sortOrder": place} for place, key in enumerate(self.random.sample(ids, len(ids)))
            ],
            "patchVariant": lambda: {"variants": self.variants()},
            "archiveFeature": lambda: None,
            "addDependency": lambda: {
                "feature": self.random.choice(FLAGS),
                "enabled": self.random.random() < 0.5,
            },
            "deleteDependency": lambda: None,
            "updateSegment": lambda: {"id": self.segment(), "constraints": self.constraints()},
            "deleteSegment": lambda: {"id": self.segment()},
        }[action]()


@pytest.mark.parametrize("action", KINDS)
def test_what_is_predicted_is_what_applying_leaves(flags: None, action: str) -> None:
    proposals, applied = Proposals(sorted(KINDS).index(action)), 0
    author, admin = Caller.system(), Caller(user=make_user("rita", root_role=1))
    for _ in range(examples(20)):
        others = proposals.random.choices(list(KINDS), k=proposals.random.randrange(4))
        with transaction.atomic():
            try:
                proposed = [proposals.propose(each) for each in (action, *others)]
                request = add_changes("shop", "production", proposed, caller=author)
                check_prediction(request, author, admin)
                applied += 1
            except (ValidationError, NotFound, IndexError):
                pass
            transaction.set_rollback(True)
    assert applied


def check_prediction(request: ChangeRequest, author: Caller, admin: Caller) -> None:
    stored, predicted = predict_request(request)
    before = read_definitions(["shop"], "production")
    who = measure_request(request, now=timezone.now()).who
    for state, caller in (("In review", author), ("Applied", admin)):
        set_state("shop", request.pk, state, caller=caller)
    after = read_definitions(["shop"], "production")
    compared = flags_of(stored).keys()
    left, untouched = flags_of(after), {k: v for k, v in flags_of(before).items() if k not in compared}
    assert flags_of(predicted) == {name: left[name] for name in compared & left.keys()}
    assert untouched.items() <= left.items()
    assert not who.affected or any(find_differing(before, after))


def flags_of(read: Definitions) -> dict[str, Any]:
    """What evaluates of each flag, with the constraints of its segments, whatever ids its strategies have."""
    return {
        flag["name"]: {
            **{key: flag[key] for key in ("enabled", "variants", "dependencies")},
            "strategies": [
                {key: value for key, value in strategy.items() if key not in ("id", "title")}
                | {"segments": [read.segments[key]["constraints"] for key in strategy["segments"]]}
                for strategy in flag["strategies"]
            ],
        }
        for flag in read.flags
    }
