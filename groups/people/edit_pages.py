"""Pages that create, change, disable and delete an account or reset its password."""

from typing import Any

from django import forms
from django.conf import settings
from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpResponseBase
from django.urls import reverse

from flagadmin.core.audit.events import EventType
from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.errors import pluralize
from groups.console import ActionPage, Breadcrumbs, ConfirmPage, EditPage, FormPage, Permission
from groups.login.links import is_mail_on, send_invitation, send_reset
from groups.login.passwords import create_first_link, reset_password
from groups.login.rules import PASSWORDS_OFF, can_use_password
from groups.models import User
from groups.models.people import AccountDocument
from groups.one_time_secrets import ShowsSecretOnce
from groups.people import actions
from groups.people.actions import AccountChanges, NewAccount
from groups.people.console import (
    LINKED_BY_EMAIL,
    Kind,
    OneAccount,
    describe_first_login,
    describe_link,
    links_by_email,
    list_root_role_choices,
)
from groups.people.personal_tokens import read_personal_tokens


class AccountForm(forms.Form):
    username = forms.CharField(
        label="User name",
        max_length=255,
        widget=forms.TextInput(
            attrs={"autocapitalize": "none", "spellcheck": "false", "autocomplete": "off"}
        ),
    )
    name = forms.CharField(label="Full name", required=False, max_length=255)
    email = forms.CharField(
        label="Email address", required=False, max_length=255, help_text="They can log in with it too."
    )
    rootRole = forms.TypedChoiceField(
        label="Root role",
        required=False,
        coerce=int,
        empty_value=None,
        help_text="Applies everywhere. Without one: only the roles granted by groups and projects.",
    )

    def __init__(self, *args: Any, is_service: bool, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["rootRole"].choices = list_root_role_choices()  # type: ignore[attr-defined]
        if is_service:
            del self.fields["email"]
        elif not settings.PASSWORD_LOGIN:
            self.fields["email"].help_text = LINKED_BY_EMAIL if links_by_email() else ""


class NewAccountPage(ShowsSecretOnce, Kind, FormPage):
    template_name = "people/account_form.html"
    form_class = AccountForm
    permission = Permission.ADMIN
    api_call = "POST {page.api}"

    def get_title(self) -> str:
        return f"New {self.singular}" if self.is_service else "Add user"

    def get_breadcrumbs(self) -> Breadcrumbs:
        return ((self.plural, self.home),)

    def get_form_kwargs(self) -> dict[str, Any]:
        return super().get_form_kwargs() | {"is_service": self.is_service}

    def submit(self, form: Any) -> str:
        data = form.cleaned_data
        new = NewAccount(
            username=data["username"],
            is_service=self.is_service,
            name=data["name"],
            email=data.get("email"),
            root_role=data["rootRole"],
        )
        user = actions.create_account(new, caller=self.caller)
        if self.is_service:
            messages.success(self.request, f"Created service account {user}. Create a token for it below.")
        elif settings.PASSWORD_LOGIN:
            link = create_first_link(user)
            if send_invitation(user, link, by=self.caller.name):
                messages.success(
                    self.request, f"Created {user}. The link to a password was sent to {user.email}."
                )
            else:
                self.created = describe_link(self.request, user, link, back=self.home)
        else:
            messages.success(self.request, f"Created {user}. {describe_first_login()}")
        return reverse(self.url_name, args=[user.pk])

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        by_mail = "The link to a first password is sent by email. Without an address, you get it to pass on."
        by_hand = "You will get a one-time login link to share."
        lead = (by_mail if is_mail_on() else by_hand) if settings.PASSWORD_LOGIN else ""
        defaults = {
            "button": f"Create {self.singular}" if self.is_service else "Add user",
            "cancel": self.home,
            "lead": "" if self.is_service else lead,
        }
        return super().get_context_data(**{**defaults, **kwargs})

    def get_api_body(self) -> Any:
        return {"username": "deploy-bot" if self.is_service else "ada", "rootRole": "Viewer"}


class EditAccountPage(EditPage, OneAccount, NewAccountPage):
    api_call = "PUT {page.api}/{user_id}"

    def find(self) -> None:
        super().find()
        self.user = self.account()

    def get_events(self) -> QuerySet[AuditEvent]:
        kinds = (EventType.USER_UPDATED, EventType.SERVICE_ACCOUNT_UPDATED)
        return AuditEvent.objects.filter(type__in=kinds, after__id=self.user_id)

    def get_current_document(self) -> AccountDocument:
        return self.user.document()

    def get_title(self) -> str:
        return f"Edit {self.user.display_name}"

    def get_initial(self) -> dict[str, Any]:
        user = self.user
        return {
            "username": user.username,
            "name": user.name,
            "email": user.email,
            "rootRole": user.root_role_id,
        }

    def get_form(self, form_class: type[forms.BaseForm] | None = None) -> forms.BaseForm:
        form = super().get_form(form_class)
        form.fields["username"].disabled = True
        form.fields["username"].help_text = "A user name cannot be changed: the activity log refers to it."
        return form

    def submit(self, form: Any) -> str:
        data = form.cleaned_data
        changes: AccountChanges = {"name": data["name"], "root_role": data["rootRole"]}
        if not self.is_service:
            changes["email"] = data["email"]
        user = actions.update_account(
            self.user_id,
            changes,
            is_service=self.is_service,
            expected=self.version.expected,
            caller=self.caller,
        )
        return self.done(f"Changed {user}.", self.url)

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        defaults = {"button": f"Save {self.singular}", "cancel": self.url, "lead": ""}
        return super().get_context_data(**{**defaults, **kwargs})

    def get_api_body(self) -> Any:
        return {"rootRole": "Viewer"}


class SetActive(OneAccount, ActionPage):
    """Disables an account or enables it again."""

    def act(self) -> str:
        active = self.request.POST.get("active") == "yes"
        user = actions.update_account(
            self.user_id, {"is_active": active}, is_service=self.is_service, caller=self.caller
        )
        if active:
            return f"{user} is enabled again, with its previous access."
        return f"{user} is disabled: it cannot log in, and its tokens do not work. Roles and groups are kept."

    def get_success_url(self) -> str:
        return self.url


class ResetPasswordPage(ShowsSecretOnce, OneAccount, ConfirmPage):
    """Invalidates the current password and shows a one-time link for choosing a new one."""

    def plan(self) -> dict[str, Any]:
        user = self.account()
        oneself = "Change your own password on your account's page." if user.pk == self.caller.id else ""
        disabled = "" if user.is_active else f"{user} is disabled. Enable the account first."
        off = "" if settings.PASSWORD_LOGIN else PASSWORDS_OFF
        has_password = can_use_password(user)
        removed = [f"the current password of {user}"] if has_password else []
        return {
            "title": f"Reset {user.display_name}'s password"
            if has_password
            else f"Set a password for {user.display_name}",
            "lead": "They get an email with a link that works once and lets them choose a new password."
            if is_mail_on() and user.email
            else "You get a link to pass on. It works once and lets them choose a new password.",
            "removed_items": [*removed, "all their sessions and older links", "their personal tokens"],
            "button": "Reset password" if has_password else "Create link",
            "blocked": off or oneself or disabled,
        }

    def show_secret(self, created: dict[str, str]) -> HttpResponseBase:
        self.template_name = "people/account_form.html"
        return super().show_secret(created)

    def act(self) -> tuple[str, str]:
        user = self.account()
        sentence = "The password is reset." if can_use_password(user) else "The link is created."
        link = reset_password(self.user_id, caller=self.caller)
        if send_reset(user, link, hours="24 hours"):
            return f"{sentence} The link was sent to {user.email}.", self.url
        self.created = describe_link(self.request, user, link, back=self.url)
        return sentence, self.url


class DeleteAccountPage(OneAccount, ConfirmPage):
    api_call = "DELETE {page.api}/{user_id}"

    def plan(self) -> dict[str, Any]:
        user = self.account()
        return {
            "title": f"Delete {self.singular} {user.display_name}",
            "removed_items": list_removed(user, self.singular),
            "kept": "Past changes stay in the activity log. To keep the account for later, "
            "disable it instead.",
            "blocked": " ".join(error.message for error in actions.find_account_blockers(user, self.caller)),
        }

    def act(self) -> tuple[str, str]:
        user = self.account()
        actions.delete_account(self.user_id, is_service=self.is_service, caller=self.caller)
        return f"Deleted {self.singular} {user}.", self.home


def list_removed(user: User, kind: str) -> list[str]:
    """Lists everything that is deleted with an account, one line each."""
    lines = [f"the {kind} {user.display_name}" + (f", {user.root_role}" if user.root_role else "")]
    lines += [f"the token {token.name}, which stops working" for token in read_personal_tokens(user)]
    lines += [f"membership of {group}" for group in user.groups.order_by("name")]
    if owned := user.owned_flags.count():
        lines.append(f"the owner of {pluralize(owned, 'flag')}, which will have none")
    grants = user.grants.select_related("role").order_by("project_id", "role__name")
    return lines + [f"role {grant.role} in {grant.project_id}" for grant in grants]
