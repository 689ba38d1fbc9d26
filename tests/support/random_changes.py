"""Makes random changes to the flags of projects shop and docs, through every action that changes them."""

from collections.abc import Callable
from random import Random
from typing import Any

from django.core.exceptions import ObjectDoesNotExist
from django.db import transaction

from flagadmin.core.errors import AppError
from groups.access import Caller
from importer.apply.execute import import_body
from importer.apply.undo import undo_import
from importer.body.schemas import read_body
from importer.models import ImportRun
from projects.deletion.execute import delete_project
from projects.environments.actions import create_environment, delete_environment, update_environment
from projects.flags.actions import NewFlag, create_flag, set_stale, update_flag
from projects.flags.archive import actions as archive
from projects.flags.copies import clone, move
from projects.flags.dependencies import actions as dependencies
from projects.flags.environments import actions as environments
from projects.models import Dependency, Environment, Flag, Project, Segment, Strategy
from projects.projects.actions import archive_project, create_project, revive_project
from projects.projects.environments import add_environment, remove_environment, set_default_strategy
from projects.segments.actions import create_segment, delete_segment, update_segment
from projects.strategies import actions as strategies
from tests.support import import_bodies

WHO = Caller.system()
NAMES = [f"flag-{letter}" for letter in "abcdefgh"]
PROJECTS = ["shop", "docs"]


class RandomChanges:
    """``step()`` makes one change, or none if it is not possible, and says which."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        methods = ((name, getattr(self, name)) for name in dir(self) if name.startswith("do_"))
        self.actions: list[tuple[str, Callable[[], Any]]] = list(methods)
        self.done: dict[str, int] = {}

    def step(self) -> str | None:
        name, action = self.random.choice(self.actions)
        try:
            with transaction.atomic():
                action()
        except (AppError, IndexError, ObjectDoesNotExist):
            return None
        self.done[name] = self.done.get(name, 0) + 1
        return name

    # Choices

    def flag(self, **where: Any) -> Flag:
        return self.random.choice(list(Flag.objects.filter(**where).order_by("name")))

    def active(self) -> Flag:
        return self.flag(archived_at=None)

    def place(self) -> tuple[str, str, str]:
        flag = self.active()
        return flag.project_id, flag.name, self.environment()

    def environment(self) -> str:
        return self.random.choice(list(Environment.objects.order_by("name").values_list("name", flat=True)))

    def project(self) -> str:
        return self.random.choice(list(Project.objects.order_by("id").values_list("id", flat=True)))

    def constraints(self) -> list[dict[str, Any]]:
        values = self.random.sample(["1", "2", "3", "4"], 2)
        return [{"contextName": "userId", "operator": "IN", "values": values}] * self.random.randrange(2)

    def strategy(self) -> dict[str, Any]:
        known = list(Segment.objects.filter(project=None).order_by("id").values_list("id", flat=True))
        return {
            "name": "flexibleRollout",
            "parameters": {"rollout": str(self.random.randrange(101))},
            "constraints": self.constraints(),
            "variants": self.variants(),
            "segments": self.random.sample(known, min(len(known), self.random.randrange(3))),
            "disabled": self.random.random() < 0.3,
            "title": self.random.choice([None, "One", "Two"]),
        } | ({"sortOrder": self.random.randrange(4)} if self.random.random() < 0.3 else {})

    def variants(self) -> list[dict[str, Any]]:
        names = self.random.sample(["red", "green", "blue"], self.random.randrange(3))
        return [{"name": name, "weightType": "variable", "weight": 1} for name in names]

    def stored_strategy(self) -> tuple[str, str, str, str]:
        row = self.random.choice(list(Strategy.objects.filter(flag__archived_at=None).order_by("id")))
        return row.flag.project_id, row.flag.name, row.environment_id, str(row.pk)

    # Flags

    def do_create(self) -> None:
        new = NewFlag(name=self.random.choice(NAMES), impression_data=self.random.random() < 0.5)
        create_flag(self.project(), new, caller=WHO)

    def do_clone(self) -> None:
        flag = self.active()
        clone.clone_flag(flag.project_id, flag.name, self.random.choice(NAMES), caller=WHO)

    def do_metadata(self) -> None:
        flag = self.active()
        changes = {"impression_data": self.random.random() < 0.5, "stale": self.random.random() < 0.5}
        update_flag(flag.project_id, flag.name, changes, caller=WHO)

    def do_stale(self) -> None:
        flag = self.active()
        set_stale({flag.project_id: [flag.name]}, self.random.random() < 0.5, caller=WHO)

    def do_archive(self) -> None:
        flags = [self.active() for _ in range(self.random.randrange(1, 4))]
        archive.archive_flags(flags[0].project_id, [flag.name for flag in flags], caller=WHO)

    def do_revive(self) -> None:
        flags = [self.flag(archived_at__isnull=False) for _ in range(2)]
        archive.revive_flags(flags[0].project_id, [flag.name for flag in flags], caller=WHO)

    do_revive_again = do_revive

    def do_delete(self) -> None:
        flags = [self.flag(archived_at__isnull=False) for _ in range(self.random.randrange(1, 3))]
        archive.delete_flags(flags[0].project_id, [flag.name for flag in flags], caller=WHO)

    def do_move(self) -> None:
        flag = self.active()
        move.move_flag(flag.project_id, flag.name, self.project(), caller=WHO)

    # In an environment

    def do_enable(self) -> None:
        environments.enable_flag(*self.place(), activate_disabled=self.random.random() < 0.5, caller=WHO)

    do_enable_again = do_enable

    def do_disable(self) -> None:
        environments.disable_flag(*self.place(), caller=WHO)

    def do_variants(self) -> None:
        environments.set_variants(*self.place(), self.variants(), caller=WHO)

    def do_add_strategy(self) -> None:
        strategies.add_strategy(*self.place(), self.strategy(), caller=WHO)

    do_add_another = do_add_strategy

    def do_update_strategy(self) -> None:
        strategies.update_strategy(*self.stored_strategy(), self.strategy(), caller=WHO)

    def do_remove_strategy(self) -> None:
        strategies.remove_strategy(*self.stored_strategy(), caller=WHO)

    def do_order(self) -> None:
        *place, _ = self.stored_strategy()
        rows = Strategy.objects.filter(flag__name=place[1], environment=place[2])
        orders = [(str(row.pk), self.random.randrange(4)) for row in rows]
        strategies.order_strategies(*place, orders, caller=WHO)

    # Parents

    def do_add_dependency(self) -> None:
        flag, parent = self.active(), self.active()
        dependency = {"feature": parent.name, "enabled": self.random.random() < 0.5}
        dependencies.add_dependency(flag.project_id, flag.name, dependency, caller=WHO)

    do_add_more = do_add_dependency

    def do_remove_dependency(self) -> None:
        row = self.random.choice(list(Dependency.objects.filter(flag__archived_at=None).order_by("id")))
        place = (row.flag.project_id, row.flag.name)
        if self.random.random() < 0.5:
            dependencies.remove_dependency(*place, row.parent.name, caller=WHO)
        else:
            dependencies.clear_dependencies(*place, caller=WHO)

    # Segments

    def do_create_segment(self) -> None:
        name = f"segment-{self.random.randrange(4)}"
        create_segment({"name": name, "constraints": self.constraints()}, caller=WHO)

    def segment(self) -> int:
        return self.random.choice(list(Segment.objects.order_by("id").values_list("id", flat=True)))

    def do_update_segment(self) -> None:
        changes = {"constraints": self.constraints(), "name": f"segment-{self.random.randrange(4)}"}
        update_segment(self.segment(), changes, caller=WHO)

    def do_delete_segment(self) -> None:
        delete_segment(self.segment(), caller=WHO)

    # Projects and environments

    def do_project_environment(self) -> None:
        place = (self.project(), self.environment())
        if self.random.random() < 0.5:
            add_environment(*place, caller=WHO)
        else:
            remove_environment(*place, caller=WHO)

    def do_default_strategy(self) -> None:
        default = self.strategy()
        set_default_strategy(self.project(), self.environment(), default | {"disabled": False}, caller=WHO)

    def do_environment(self) -> None:
        choice = self.random.random()
        if choice < 0.4:
            create_environment({"name": "extra", "type": "test"}, caller=WHO)
            add_environment("docs", "extra", caller=WHO)
        elif choice < 0.5:
            update_environment("extra", {"enabled": self.random.random() < 0.5}, caller=WHO)
        else:
            for flag in Flag.objects.active().filter(environments__environment="extra"):
                environments.disable_flag(flag.project_id, flag.name, "extra", caller=WHO)
            remove_environment("docs", "extra", caller=WHO)
            delete_environment("extra", caller=WHO)

    def do_delete_project(self) -> None:
        names = list(Flag.objects.active().filter(project="docs").values_list("name", flat=True))
        archive.archive_flags("docs", names, caller=WHO)
        archive_project("docs", caller=WHO)
        if self.random.random() < 0.5:
            revive_project("docs", caller=WHO)
        else:
            delete_project("docs", caller=WHO)
            create_project({"id": "docs", "name": "Docs"}, caller=WHO)

    # Imports

    def do_import(self) -> None:
        names = self.random.sample(NAMES, 2)
        listed = [
            import_bodies.strategy(name, parameters={"rollout": str(self.random.randrange(101))})
            for name in self.random.choices(names, k=self.random.randrange(4))
        ]
        features = [
            {
                "name": name,
                "impressionData": self.random.random() < 0.5,
                "archived": self.random.random() < 0.2,
            }
            for name in names
        ]
        content = import_bodies.body(
            project=self.project(),
            environment=self.environment(),
            features=features,
            featureStrategies=listed,
            featureEnvironments=[import_bodies.switch(names[0], self.random.random() < 0.5)],
            dependencies=[{"feature": names[0], "dependencies": [{"feature": names[1]}]}]
            if self.random.random() < 0.3
            else [],
            segments=[],
        )
        import_body(read_body(content), caller=WHO)

    do_import_again = do_import

    def do_undo(self) -> None:
        run = ImportRun.objects.filter(state=ImportRun.State.DONE).latest("finished_at")
        undo_import(run.pk, caller=WHO)
