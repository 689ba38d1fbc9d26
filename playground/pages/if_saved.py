"""/if-saved/…: who would get a different result if a form were saved. The rest of the path is the form's. This page
processes the form as its own page would, but writes nothing.
"""

from typing import Any
from urllib.parse import urlencode

from django.conf import settings
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import render
from django.utils import timezone

from flagadmin.core.errors import Conflict, InvalidOperation, NameExists, ValidationError
from groups.console import ConsolePage
from playground.comparison.impact import EXAMPLES, MAX_EDITS, MAX_VALUES, TooManyValues, measure_impacts
from playground.pages.lines import EffectsView, ImpactView, explain_in
from playground.saved_contexts.effects import predict_effects
from projects.drafting import DraftingPage, describe_refusal, open_form
from projects.drafts import NewFlagEdit

DETAILED = 30
"""Examples on the page; the part loaded beside a form has few."""
FORM_ONLY = ("csrfmiddlewaretoken", "do", "left")


class IfSavedPage(ConsolePage):
    """Answers htmx with the part beside the form (`part_name`), other requests with a page that leads back to it."""

    http_method_names = ["post"]
    body_limit = settings.COMPARE_BODY_LIMIT  # a form may have a list of a segment
    template_name = "playground/if_saved.html"
    part_name = "playground/impact.html"
    prefix = "/if-saved"
    title = "Who changes"

    def post(self, request: HttpRequest, form: str) -> HttpResponseBase:
        page = open_form(f"/{form}", request, self.caller)
        beside = "HX-Request" in request.headers
        context = self.compare(page, beside=beside)
        if beside:
            return render(request, self.part_name, context)
        context |= {"breadcrumbs": page.get_breadcrumbs()} | self.way_back(page)
        return self.render_to_response(self.get_context_data(**context))

    def compare(self, page: DraftingPage, *, beside: bool) -> dict[str, Any]:
        """The effects of saving the form, or the reason why it cannot be saved."""
        try:
            edits = page.get_edits()
        except (ValidationError, InvalidOperation, Conflict, NameExists) as error:
            is_invalid = isinstance(error, ValidationError) and error.details
            if is_invalid and page.shown_by == "post":  # the form shows it beside its inputs
                return {"error": error}
            return {"refusals": describe_refusal(error)}
        examples, max_values = (EXAMPLES, MAX_VALUES) if beside else (DETAILED, None)
        try:
            impacts_found = measure_impacts(
                edits, now=timezone.now(), caller=self.caller, examples=examples, most_values=max_values
            )
        except TooManyValues as error:
            return {"refusals": describe_refusal(error)}
        return {
            "edits": edits,
            "caller": self.caller,
            "impacts": [
                ImpactView(
                    impact,
                    is_new=(is_new := isinstance(edit, NewFlagEdit)),
                    explain=None if beside or is_new else explain_in([edit.environment]),
                )
                for impact, edit in zip(impacts_found, edits, strict=False)
            ],
            "several": len(edits) > 1,
            "more": max(0, len(edits) - MAX_EDITS),
            "unchanged": page.unchanged,
            "saved": EffectsView(predict_effects(self.caller, edits), beside=beside),
        }

    def way_back(self, page: DraftingPage) -> dict[str, Any]:
        """The form with the entered values."""
        parameters = self.request.POST
        hidden = [
            (name, text) for name, texts in parameters.lists() for text in texts if name not in FORM_ONLY
        ]
        url = self.request.get_full_path().removeprefix(self.prefix)
        if page.shown_by == "post":
            return {"form_url": url, "kept": hidden}
        return {"back": f"{url.partition('?')[0]}?{urlencode(hidden)}"}
