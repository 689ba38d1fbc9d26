"""/account/: the user's own roles, password and tokens, and logging out everywhere."""

from dataclasses import dataclass
from datetime import UTC, datetime, time
from typing import Any

from django import forms
from django.conf import settings
from django.contrib.auth import logout
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.urls import reverse, reverse_lazy
from django.utils.decorators import method_decorator
from django.utils.functional import cached_property
from django.views.decorators.debug import sensitive_post_parameters

from flagadmin.core.errors import ValidationError
from flagadmin.core.http.middleware import get_client_address
from groups.console import ActionPage, Breadcrumbs, FormPage, Listing, Permission, read_next_page
from groups.login.flow import NewPasswordField, PasswordField
from groups.login.passwords import change_password, check_own_password, log_out_everywhere
from groups.login.rules import can_use_password, check_passwords_on
from groups.login.sign_on.accounts import describe_own_link
from groups.models import Grant, GroupMembership, Role, RolePermission, User
from groups.one_time_secrets import ShowsSecretOnce
from groups.people.console import OwnPage
from groups.people.personal_tokens import create_personal_token, delete_personal_token, read_personal_tokens
from groups.roles.subjects import is_used, name_permission
from groups.second_factor.actions import read_second_factors
from groups.sessions.store import keep_this_session, read_sessions


class AccountPage(OwnPage):
    template_name = "people/own_account.html"
    title = "Your account"
    api_call = "GET /api/admin/user"

    def get_breadcrumbs(self) -> list[tuple[str, str]]:
        return []

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        lists = read_access_lists(self.user, self.request.GET)
        return super().get_context_data(
            **kwargs,
            user=self.user,
            factors=read_second_factors(self.user),
            sign_on=describe_own_link(self.request, self.user),
            password_login=settings.PASSWORD_LOGIN,
            has_password=can_use_password(self.user),
            **lists,
        )


def read_access_lists(user: User, parameters: QueryDict) -> dict[str, Listing[Any]]:
    """``user_groups``, ``grants``, ``tokens`` and ``sessions`` of an account, each paged separately."""
    by_provider = Exists(GroupMembership.objects.filter(user=user, group=OuterRef("pk"), by_provider=True))
    lists: dict[str, Any] = {
        "user_groups": user.groups.select_related("root_role")
        .annotate(by_provider=by_provider)
        .order_by("name"),
        "grants": read_grants(user),
        "tokens": read_personal_tokens(user),
        "sessions": read_sessions(user),
    }
    return {
        name: Listing(parameters, rows, columns=(), page_name=f"{name}-page") for name, rows in lists.items()
    }


class PasswordForm(forms.Form):
    currentPassword = PasswordField("current-password", label="Current password")
    password = NewPasswordField(label="New password")
    confirmPassword = PasswordField("new-password", label="New password again")

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        if "password" in data and data.get("confirmPassword") not in (None, data["password"]):
            self.add_error("confirmPassword", "The new passwords do not match.")
        return data


@method_decorator(
    sensitive_post_parameters("currentPassword", "password", "confirmPassword"), name="dispatch"
)
class PasswordPage(OwnPage, FormPage):
    template_name = "people/password.html"
    form_class = PasswordForm
    api_call = "POST /api/admin/user/change-password"
    api_example = {"oldPassword": "…", "password": "…", "confirmPassword": "…"}

    @cached_property
    def then(self) -> str:
        """The page that a new user continues to; "" for others."""
        return "" if self.user.has_usable_password() else read_next_page(self.request)

    def get_title(self) -> str:
        if self.then:
            return "Welcome to flagadmin"
        return "Change your password" if self.user.has_usable_password() else "Choose a password"

    def get_breadcrumbs(self) -> Breadcrumbs:
        return () if self.then else super().get_breadcrumbs()

    def find(self) -> None:
        check_passwords_on()

    def get_form(self, form_class: type[forms.BaseForm] | None = None) -> forms.BaseForm:
        form = super().get_form(form_class)
        if not self.user.has_usable_password():
            del form.fields["currentPassword"]
        return form

    def submit(self, form: Any) -> str:
        data = form.cleaned_data
        then, verb = self.then, "changed" if self.user.has_usable_password() else "set"
        if "currentPassword" in data:
            address = get_client_address(self.request)
            check_own_password(self.user, data["currentPassword"], path="currentPassword", address=address)
        change_password(self.user, data["password"], caller=self.caller)
        keep_this_session(self.request, self.user)
        if then:
            return self.done("Password set.", then)
        return self.done(f"Password {verb}. You are logged out everywhere else.", reverse("account"))

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        has_password = self.user.has_usable_password()
        return super().get_context_data(
            button="Change your password" if has_password else "Choose a password",
            then=self.then,
            user=self.user,
            access=describe_access(self.user) if self.then else [],
            **kwargs,
        )


class TokenForm(forms.Form):
    description = forms.CharField(label="Description", max_length=255)
    expiresAt = forms.DateField(
        label="Expires",
        required=False,
        help_text="At the end of that day, UTC. Leave empty for never.",
        widget=forms.DateInput(attrs={"type": "date"}),
    )

    def values(self) -> dict[str, Any]:
        """``name`` and ``expires_at``. Raises ValidationError for a day in the past."""
        day = self.cleaned_data["expiresAt"]
        expires_at = datetime.combine(day, time.max, UTC) if day else None
        if expires_at is not None and expires_at <= datetime.now(UTC):
            raise ValidationError.at("expiresAt", "Enter a date in the future.")
        return {"name": self.cleaned_data["description"], "expires_at": expires_at}


class NewTokenPage(ShowsSecretOnce, OwnPage, FormPage):
    template_name = "people/token_new.html"
    title = "New personal token"
    form_class = TokenForm
    api_call = "POST /api/admin/user/tokens"
    api_example = {"description": "laptop"}

    def submit(self, form: Any) -> str:
        _, secret = create_personal_token(self.user, **form.values(), caller=self.caller)
        self.created = {"secret": secret, "title": "Your new token"}
        return reverse("account")


class RevokeTokenPage(OwnPage, ActionPage):
    success_url = reverse_lazy("account")

    def act(self) -> str:
        delete_personal_token(self.user, self.kwargs["token_id"], caller=self.caller)
        return "Token revoked."


class LogOutEverywherePage(OwnPage):
    http_method_names = ["post"]

    def post(self, request: HttpRequest) -> HttpResponse:
        log_out_everywhere(self.user, caller=self.caller)
        logout(request)
        return HttpResponseRedirect(reverse("login"))


@dataclass(frozen=True, slots=True)
class Access:
    """A role and its permissions by environment ("" for all). ``project``: its name, "" for every project."""

    role: str
    project_id: str
    project: str
    permits: list[tuple[str, str]]


def read_grants(user: User) -> QuerySet[Grant]:
    """The project roles of a user, granted directly or (``grant.group``) through a group."""
    grants = Grant.objects.filter(Q(user=user) | Q(group__in=user.groups.values("pk")))
    return grants.select_related("role", "group").order_by("project_id", "role__name", "id")


def describe_access(user: User) -> list[Access]:
    """The roles of a user: root roles first, then by project."""
    everywhere = Role.objects.filter(Q(users=user) | Q(groups__members=user)).distinct()
    grants = read_grants(user).select_related("role", "project")
    return [
        *(Access(role.name, "", "", _list_permitted(role)) for role in everywhere),
        *(
            Access(grant.role.name, grant.project_id, grant.project.name, _list_permitted(grant.role))
            for grant in grants
        ),
    ]


def _list_permitted(role: Role) -> list[tuple[str, str]]:
    """[("development", "Add strategies, Switch flags"), …]; the description of a built-in role."""
    if role.is_built_in:
        return [("", role.description)]
    names: dict[str, list[str]] = {}
    rows = RolePermission.objects.filter(role=role).order_by("environment__sort_order", "permission")
    for permission, environment in rows.values_list("permission", "environment_id"):
        if is_used(permission):
            names.setdefault(environment or "", []).append(name_permission(Permission[permission]))
    return [(where, ", ".join(sorted(those))) for where, those in sorted(names.items())]
