"""/access/people/ and /access/service-accounts/: lists of accounts, and the details of one account."""

from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.db.models import Count, F, Max, Min, OuterRef, Q, QuerySet, Subquery, Value
from django.db.models.functions import Coalesce
from django.urls import reverse
from django.utils.timesince import timesince

from flagadmin.core.errors import NotFound
from flagadmin.core.lists.pages import Column, Filter, curl_for, curl_with_token
from groups.console import ActionPage, Breadcrumbs, ConfirmPage, FormPage, ListPage, Permission
from groups.login.rules import can_use_password
from groups.login.sign_on.accounts import find_identity
from groups.models import ApiToken, Grant, GroupMembership, User
from groups.one_time_secrets import ShowsSecretOnce
from groups.people.actions import INACTIVE_AFTER, read_inactive_people
from groups.people.console import Kind, OneAccount, list_root_role_choices
from groups.people.own_account_pages import TokenForm, read_access_lists
from groups.people.personal_tokens import (
    confirm_account,
    create_personal_token,
    delete_personal_token,
    find_confirmers,
    list_custodies,
    read_personal_tokens,
    say_who_confirms,
)
from groups.second_factor.actions import annotate_second_factor, list_factor_names

INACTIVE = "inactive"  # a state to filter by
VERBS = ("edit", "grant", "active", "delete")


class AccountsPage(Kind, ListPage):
    title = "{page.plural}"
    template_name = "people/accounts.html"
    lead = "Who can log in."
    new = ("person-new", "Add user")
    none_yet = "No service accounts yet. A program needs one to change flags."
    default_sort = "name"
    columns: Sequence[Column] = (
        Column(
            "name",
            "Name",
            by=("username",),
            cell='<span class="row nowrap">{% avatar row.display_name row.is_service %}<span>'
            '{% include "includes/account_name.html" with user=row bare_kind=True %}'
            '{% if row.email and row.email != row.username %}<small class="below">{{ row.email }}</small>{% endif %}'
            "</span></span>",
        ),
        Column("root_role", "Root role", by=("root_role__name", "username"), none="none"),
        Column("groups", "Groups", by=("group_count",), numeric=True),
        Column("projects", "Projects", by=("project_count",), numeric=True),
        Column(
            "two_step",
            "Two-step verification",
            by=("has_second_factor", "username"),
            csv=lambda row: "on" if row.has_second_factor else "off",
            pill='{{ row.has_second_factor|yesno:"on,off" }}',
            shown='yesno:"On,Off"',
        ),
        Column("seen", "Last seen", by=("last_seen",), shown="ago"),
    )
    service_columns = (
        *columns[:-2],
        Column("tokens", "Tokens", by=("token_count",), numeric=True),
        Column("seen", "Last used", by=("last_seen",), shown="ago"),
        Column("expires", "Next expiry", by=("next_expiry",), shown="expiry"),
    )

    def find(self) -> None:
        if self.is_service:
            self.columns = self.service_columns
            self.lead = "Accounts for programs: they have tokens and cannot log in."
            self.new = ("service-account-new", "New service account")
            self.begin = (self.new[0], "Create the first service account")
        self.noun = self.counted

    @property
    def csv_name(self) -> str:  # type: ignore[override]
        return self.plural.lower().replace(" ", "-")

    def get_filters(self) -> Sequence[Filter]:
        roles = [("-", "none"), *list_root_role_choices()[1:]]
        states = [("active", "in use"), ("disabled", "disabled")]
        if not self.is_service:
            states.append((INACTIVE, f"not seen for {INACTIVE_AFTER.days} days"))
        return (
            Filter("q", "Name or email", by=("username", "name", "email")),
            Filter("role", "Root role", roles),
            Filter("state", "State", states),
        )

    def get_rows(self, values: dict[str, str]) -> QuerySet[Any]:
        self.caller.check(Permission.ADMIN)
        users = User.objects.filter(is_service=self.is_service).select_related("root_role")
        if values["role"]:
            users = users.filter(root_role=None if values["role"] == "-" else int(values["role"]))
        if values["state"] == INACTIVE:
            users = users.filter(pk__in=read_inactive_people(self.caller).values("pk"))
        elif values["state"]:
            users = users.filter(is_active=values["state"] == "active")
        users = users.annotate(
            group_count=Count("memberships", distinct=True),
            project_count=_count_projects(),
        )
        if not self.is_service:
            return annotate_second_factor(users).annotate(last_seen=F("seen_at"))
        return users.annotate(
            token_count=Count("tokens", distinct=True),
            last_seen=Max("tokens__seen_at"),
            next_expiry=Min("tokens__expires_at"),
        )

    def get_curl(self) -> str:
        path = f"{self.api}/inactive" if self.request.GET.get("state") == INACTIVE else self.api
        return curl_for(self.request, "GET", path)


def _count_projects() -> Coalesce:
    """The number of projects in which a user has a role of its own or of a group."""
    groups = GroupMembership.objects.filter(user=OuterRef(OuterRef("pk"))).values("group")
    held = Grant.objects.filter(Q(user=OuterRef("pk")) | Q(group__in=groups)).order_by()
    counted = held.values(all=Value(1)).annotate(n=Count("project", distinct=True)).values("n")
    return Coalesce(Subquery(counted), 0)


class ConfirmAccount(OneAccount, ActionPage):
    """Confirms that an account belongs to another person than its creator."""

    def act(self) -> str:
        user = confirm_account(self.user_id, caller=self.caller)
        return f"{user.display_name} is confirmed: their approvals count beside those of whoever made the account."

    def get_success_url(self) -> str:
        return self.url


class AccountPage(OneAccount):
    template_name = "people/account.html"
    api_call = "GET {page.api}/{user_id}"

    def get_breadcrumbs(self) -> Breadcrumbs:
        return ((self.plural, self.home),)

    def custody(self, user: User) -> dict[str, Any]:
        """The users who could act as the account, and those who may confirm it."""
        if user.is_service or not (custodies := list_custodies(user)):
            return {}
        return {
            "custodies": custodies,
            "may_confirm": self.caller.user in find_confirmers(user),
            "confirmers": say_who_confirms(user),
        }

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        user = self.account()
        return super().get_context_data(
            **{
                "title": user.display_name,
                "user": user,
                "url": self.url,
                **read_access_lists(user, self.request.GET),
                "factors": list_factor_names(user),
                **self.custody(user),
                "identity": find_identity(user),
                "password_login": settings.PASSWORD_LOGIN,
                "has_password": can_use_password(user),
                "oneself": user.pk == self.caller.id,
                "urls": {verb: reverse(f"{self.url_name}-{verb}", args=[user.pk]) for verb in VERBS},
                **kwargs,
            }
        )


class NewServiceToken(ShowsSecretOnce, OneAccount, FormPage):
    template_name = "people/service_token_new.html"
    title = "New token"
    api_call = "POST {page.api}/{user_id}/token"
    api_example = {"description": "deploy"}
    form_class = TokenForm

    def submit(self, form: Any) -> str:
        account = self.account()
        _, secret = create_personal_token(account, **form.values(), caller=self.caller)
        self.created = {
            "secret": secret,
            "command": curl_with_token(self.request, "/api/admin/projects", secret),
            "title": f"New token of {account}",
        }
        return self.url

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return super().get_context_data(**{"account": self.account(), "back": self.url, **kwargs})


class RevokeServiceToken(OneAccount, ConfirmPage):
    api_call = "DELETE {page.api}/{user_id}/token/{token_id}"

    def token(self) -> ApiToken:
        tokens = [t for t in read_personal_tokens(self.account()) if t.pk == self.kwargs["token_id"]]
        if not tokens:
            raise NotFound("Token not found.")
        return tokens[0]

    def plan(self) -> dict[str, Any]:
        token = self.token()
        if token.seen_at:
            used = f"was last used {timesince(token.seen_at, depth=1)} ago"
            lead = f"{token.name} {used}. Clients still using it get 401 immediately."
        else:
            lead = f"{token.name} has never been used."
        return {
            "title": f"Revoke token {token.name}",
            "lead": lead,
            "removed_items": [f"the token {token.name} ({token.prefix}…) of {self.account()}"],
        }

    def act(self) -> tuple[str, str]:
        token = self.token()
        delete_personal_token(self.account(), token.pk, caller=self.caller)
        return f"Revoked token {token.name}. It no longer works.", self.url
