"""/access/scim/: whether an identity provider manages people and groups, and its token."""

from typing import Any

from django import forms
from django.conf import settings
from django.urls import reverse, reverse_lazy

from flagadmin.core.errors import ValidationError
from groups.console import ActionPage, Breadcrumbs, FormPage, Permission
from groups.one_time_secrets import CREATED, ShowsSecretOnce
from groups.scim import actions
from groups.scim.actions import read_settings


class ProvisioningPage(ShowsSecretOnce, FormPage):
    """Its form creates a token."""

    template_name = "scim/provisioning.html"
    title = "Provisioning"
    api_call = "GET /api/admin/scim-settings"
    form_class = forms.Form
    permission = Permission.ADMIN

    def get_breadcrumbs(self) -> Breadcrumbs:
        """Returns the breadcrumbs of the page that shows a new token."""
        return (("Provisioning", reverse("scim")),) if CREATED in self.request.GET else ()

    def submit(self, form: Any) -> str:
        secret = actions.make_token(caller=self.caller)
        self.created = {"title": "Token for provisioning", "secret": secret, "back": reverse("scim")}
        return reverse("scim")

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        server = settings.PUBLIC_URL or self.request.build_absolute_uri("/").rstrip("/")
        context = {"address": f"{server}/scim/v2", "found": read_settings(self.caller)}
        return super().get_context_data(**{**context, **kwargs})


class SetProvisioning(ActionPage):
    """Switches SCIM, or the search by email address, on or off."""

    success_url = reverse_lazy("scim")

    def act(self) -> str:
        if (by_email := self.request.POST.get("by_email")) in ("yes", "no"):
            scim = actions.set_finds_by_email(by_email == "yes", caller=self.caller)
            return f"Accounts are{'' if scim.finds_by_email else ' no longer'} found by their email address."
        if (enabled := self.request.POST.get("enabled")) not in ("yes", "no"):
            raise ValidationError.at("enabled", "must be yes or no")
        is_enabled = actions.set_enabled(enabled == "yes", caller=self.caller).is_enabled
        return "Provisioning is on." if is_enabled else "Provisioning is off: its token no longer works."
