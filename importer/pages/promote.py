"""/projects/ID/promote: plans the promotion of chosen flags. Its preview is that of an import."""

from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.urls import reverse

from flagadmin.core.errors import ValidationError
from groups.access import Caller
from groups.console import ConsolePage
from importer.bulk_work import run_isolated
from importer.promotion import MAX_FLAGS, Promotion
from importer.runs import create_promotion
from projects.access import access_project
from projects.environments.comparison_queries import select_matching


class PromotePage(ConsolePage):
    """POST: ``from``, ``to``, ``name`` for each flag, or ``matching``, the query string of the list of flags."""

    http_method_names = ["post"]

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        project = access_project(self.caller, kwargs["project_id"])
        source, target = request.POST.get("from", ""), request.POST.get("to", "")
        names = request.POST.getlist("name")
        if "matching" in request.POST:
            query = QueryDict(request.POST["matching"])
            names = [flag.name for flag in select_matching(project, (source, target), query)]
        if len(names) > MAX_FLAGS:
            raise ValidationError.at("name", f"must be at most {MAX_FLAGS:,} flags, not {len(names):,}")
        promotion = Promotion(project.pk, source, target, tuple(dict.fromkeys(names)))
        run_id = run_isolated(promotion.size, plan_promotion, promotion, caller=self.caller)
        return HttpResponseRedirect(reverse("import-run", args=[run_id]))


def plan_promotion(promotion: Promotion, *, caller: Caller) -> UUID:
    return create_promotion(promotion, caller=caller).id
