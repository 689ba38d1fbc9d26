"""Pages of invite links: their list, a new one, and signing up with one at /login/invite/TOKEN/."""

from datetime import UTC, datetime, time, timedelta
from typing import Any

from django import forms
from django.db.models import Count, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.urls import reverse, reverse_lazy
from django.utils import timezone
from django.views import View

from flagadmin.core.errors import AppError, NotFound
from flagadmin.core.lists.pages import Column, Filter, add_problems
from groups.console import ActionPage, FormPage, ListPage
from groups.login.flow import NewPasswordField, begin_login, guarded
from groups.login.links import make_absolute_url
from groups.models import InviteLink, Role, User
from groups.one_time_secrets import ShowsSecretOnce
from groups.permissions import BuiltIn, Permission
from groups.sign_up import actions
from groups.sign_up.actions import NewInviteLink, may_be_given, open_invite_link, read_invite_links

API = "/api/admin/invite-link/tokens"
OFFERED_DAYS = 30


class InviteLinksPage(ListPage):
    title = "Invite links"
    lead = (
        "Anyone who has such a link can create an account with its root role, until it expires or is revoked."
    )
    noun = "link,links"
    new = ("invite-link-new", "New invite link")
    none_yet = "No invite links yet."
    begin = ("invite-link-new", "Create the first invite link")
    default_sort = "name"
    columns = (
        Column(
            "name",
            "Name",
            by=("name",),
            cell='<span class="strong">{{ row.name }}</span>'
            '{% if not row.is_enabled %} <span class="pill">revoked</span>{% endif %}',
        ),
        Column("role", "Root role", by=("role__name",)),
        Column("user_count", "Signed up", by=("user_count",), numeric=True),
        Column("creator", "Created by", by=("creator",)),
        Column("expires_at", "Expires", by=("expires_at",), shown="expiry"),
        Column("", "Actions", cell='{% include "sign_up/enable.html" %}'),
    )
    filters = (Filter("q", "Name", by=("name",)),)
    api_call = f"GET {API}"

    def get_rows(self, values: dict[str, str]) -> QuerySet[Any]:
        links = read_invite_links(self.caller).prefetch_related(None)
        names = User.objects.filter(username=OuterRef("created_by")).exclude(name="").values("name")
        return links.annotate(user_count=Count("users"), creator=Coalesce(Subquery(names), "created_by"))


def list_role_choices() -> list[tuple[int, str]]:
    return [(role.pk, role.name) for role in Role.objects.root() if may_be_given(role)]


class InviteLinkForm(forms.Form):
    name = forms.CharField(max_length=255, help_text="For example who gets the link.")
    rootRole = forms.TypedChoiceField(
        label="Root role", coerce=int, help_text="Everybody who signs up with the link gets it. Never Admin."
    )
    expiresAt = forms.DateField(
        label="Expires",
        help_text="At the end of that day, UTC.",
        widget=forms.DateInput(attrs={"type": "date"}),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["rootRole"].choices = list_role_choices()  # type: ignore[attr-defined]


class NewInviteLinkPage(ShowsSecretOnce, FormPage):
    template_name = "people/account_form.html"
    title = "New invite link"
    form_class = InviteLinkForm
    button = "Create invite link"
    parents = (("Invite links", reverse_lazy("invite-links")),)
    api_call = f"POST {API}"
    permission = Permission.ADMIN

    def get_initial(self) -> dict[str, Any]:
        day = (timezone.now() + timedelta(days=OFFERED_DAYS)).date()
        return {"rootRole": BuiltIn.VIEWER.value, "expiresAt": day}

    def submit(self, form: Any) -> str:
        data = form.cleaned_data
        new = NewInviteLink(
            name=data["name"],
            root_role=data["rootRole"],
            expires_at=datetime.combine(data["expiresAt"], time.max, UTC),
        )
        link, token = actions.create_invite_link(new, caller=self.caller)
        self.created = {
            "title": f"Invite link {link.name}",
            "secret": make_absolute_url(self.request, reverse("login-invite", args=[token])),
            "back": reverse("invite-links"),
            "lead": f"Whoever has it can sign up as {link.role}, until it expires or you revoke it.",
        }
        return reverse("invite-links")

    def get_api_body(self) -> dict[str, str]:
        expires = f"{timezone.now() + timedelta(days=OFFERED_DAYS):%Y-%m-%dT00:00:00Z}"
        return {"name": "Team", "expiresAt": expires}


class SetEnabled(ActionPage):
    """Revokes a link, or enables it again."""

    success_url = reverse_lazy("invite-links")

    def act(self) -> str:
        is_enabled = self.request.POST.get("enabled") == "yes"
        link = actions.update_invite_link(self.kwargs["key"], {"is_enabled": is_enabled}, caller=self.caller)
        return (
            f"{link} works again." if is_enabled else f"Revoked {link}. Nobody can sign up with it any more."
        )


class SignUpForm(forms.Form):
    email = forms.CharField(
        label="Email address", max_length=255, widget=forms.EmailInput(attrs={"autocomplete": "email"})
    )
    username = forms.CharField(
        label="User name",
        required=False,
        max_length=255,
        help_text="Default: the email address.",
        widget=forms.TextInput(attrs={"autocomplete": "username", "autocapitalize": "none"}),
    )
    name = forms.CharField(
        label="Full name",
        required=False,
        max_length=255,
        widget=forms.TextInput(attrs={"autocomplete": "name"}),
    )
    password = NewPasswordField()


@guarded
class SignUpPage(View):
    """/login/invite/TOKEN/: creates an account and logs in."""

    def get(self, request: HttpRequest, token: str) -> HttpResponse:
        return self.answer(request, open_invite_link(token), SignUpForm())

    def post(self, request: HttpRequest, token: str) -> HttpResponseBase:
        link, form, status = open_invite_link(token), SignUpForm(request.POST), 400
        if form.is_valid():
            try:
                user = actions.sign_up(token, **form.cleaned_data)
            except NotFound:
                raise
            except AppError as error:
                add_problems(form, error)
                status = error.status
            else:
                return begin_login(request, user, None, how="invite link")
        return self.answer(request, link, form, status=status)

    def answer(
        self, request: HttpRequest, link: InviteLink, form: SignUpForm, *, status: int = 200
    ) -> HttpResponse:
        role: Role = link.role
        context = {
            "title": "Sign up",
            "lead": f"Your account gets the role {role}. {role.description}",
            "form": form,
            "button": "Create account and log in",
        }
        return render(request, "login/link.html", context, status=status)
