"""/projects/ID/: the active or archived flags of a project, with a toggle for each environment."""

from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import Exists, OuterRef, QuerySet

from flagadmin.console.lists import Column, Filter, curl_for
from groups.console import Crumbs, ListPage
from groups.permissions import Permission
from projects.access import access_project
from projects.console import PROJECTS, allowed, api_path, project_url
from projects.flags.flag_rows import flag_rows
from projects.flags.search import FlagFilter
from projects.flags.search_conditions import text_query
from projects.models import (
    FavouriteFlag,
    FavouriteProject,
    Flag,
    FlagEnvironment,
    FlagTag,
    FlagType,
    ProjectApplication,
)
from projects.projects.actions import SETTINGS_PERMISSIONS
from projects.projects.queries import flag_counts, member_counts

NAME, TYPE = Column("name", "Flag", by=("name",)), Column("type", "Type", by=("type",))
CREATED = Column("created", "Created", by=("created_at",))
MOST_SWITCHES = 150  # on one page
ARCHIVED = Column("archived", "Archived", by=("archived_at",))


class ProjectPage(ListPage):
    template_name = "projects/project.html"

    def setup(self, *args: Any, **kwargs: Any) -> None:
        super().setup(*args, **kwargs)
        self.archived = self.request.GET.get("show") == "archived"

    def listing(self) -> Any:
        self.project = access_project(self.caller, self.kwargs["project_id"])
        environments = self.project.environments.order_by("sort_order", "name")
        self.environments = list(environments.values_list("name", flat=True))
        self.csv_name = f"{self.project.pk}-flags"
        switches = [Column(f"in-{name}", name) for name in self.environments]
        self.per_page = min(50, max(10, MOST_SWITCHES // max(1, len(self.environments))))
        self.columns = (NAME, TYPE, ARCHIVED) if self.archived else (NAME, TYPE, *switches, CREATED)
        return super().listing()

    def get_title(self) -> str:
        return self.project.name

    def crumbs(self) -> Crumbs:
        return (PROJECTS,)

    def get_filters(self) -> Sequence[Filter]:
        here = Flag.objects.filter(project=self.project)
        in_use = here.order_by().values_list("type", flat=True).distinct()
        types = {*FlagType.objects.values_list("id", flat=True), *in_use}
        pairs = FlagTag.objects.filter(flag__project=self.project).order_by("tag_type", "value")
        tags = [f"{kind}:{value}" for kind, value in pairs.values_list("tag_type", "value").distinct()]
        return (
            Filter("q", "Name, description or tag"),
            Filter("type", "Type", [(name, name) for name in sorted(types)]),
            Filter("tag", "Tag", [(tag, tag) for tag in tags]),
            Filter("state", "State", [("active", "in work"), ("stale", "stale")]),
        )

    def rows(self, values: dict[str, str]) -> QuerySet[Any]:
        mine = FavouriteFlag.objects.filter(user=self.caller.id, flag=OuterRef("pk"))
        flags = Flag.objects.filter(project=self.project, archived_at__isnull=not self.archived)
        if values["q"]:
            flags = flags.filter(text_query(values["q"]))
        for name, operator in (("type", "IS"), ("tag", "INCLUDE"), ("state", "IS")):
            if values[name]:
                flags = flags.filter(FlagFilter.base_filters[name].condition(operator, [values[name]]))
        on = FlagEnvironment.objects.filter(flag=OuterRef("pk"), enabled=True).values("environment_id")
        found = flags.annotate(favourite=Exists(mine), on_in=ArraySubquery(on))
        return found.order_by("-favourite", "name")

    def csv_cells(self, row: Any) -> Sequence[Any]:
        if self.archived:
            return (row.name, row.type, row.archived_at)
        switches = ["on" if name in row.on_in else "off" for name in self.environments]
        return (row.name, row.type, *switches, row.created_at)

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        project, caller = self.project, self.caller
        return super().get_context_data(
            project=project,
            url=project_url(project.pk),
            archived=self.archived,
            rows=flag_rows(list(kwargs["listing"].rows), caller=caller),
            environments=self.environments,
            counts=flag_counts([project.pk])[project.pk],
            members=member_counts([project.pk]).get(project.pk, 0),
            applications=ProjectApplication.objects.filter(project_id=project.pk).count(),
            favourite=FavouriteProject.objects.filter(user=caller.id, project=project).exists(),
            may={
                **allowed(
                    caller,
                    project.pk,
                    create=Permission.CREATE_FEATURE,
                    archive=Permission.DELETE_FEATURE,
                    revive=Permission.UPDATE_FEATURE,
                    delete=Permission.DELETE_PROJECT,
                ),
                "settings": any(caller.can(p, project=project.pk) for p in SETTINGS_PERMISSIONS),
            },
            **kwargs,
        )

    def curl(self) -> str:
        if self.archived:
            return curl_for(self.request, "GET", f"/api/admin/archive/features/{quote(self.project.pk, '')}")
        return curl_for(self.request, "GET", f"{api_path(self.project.pk)}/features")
