"""/projects/ID/settings/tokens/: the API tokens that can read the project."""

from typing import Any

from django.db.models import Q, QuerySet

from groups.models import ApiToken, ApiTokenProject
from projects.console import InProjectPage
from projects.projects.head import make_project_head
from projects.tokens.pages import TokensPage


class ProjectTokensPage(InProjectPage, TokensPage):
    title = "Tokens"
    csv_name = "{project_id}-api-tokens"

    def get_rows(self, values: dict[str, str]) -> QuerySet[ApiToken]:
        here = ApiTokenProject.objects.filter(project=self.project).values("token")
        tokens = super().get_rows(values).exclude(kind=ApiToken.Kind.PERSONAL)
        return tokens.filter(Q(all_projects=True) | Q(pk__in=here))

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        head = make_project_head(self.project, "project-tokens", caller=self.caller)
        return super().get_context_data(parent="projects/base.html", **head, **kwargs)
