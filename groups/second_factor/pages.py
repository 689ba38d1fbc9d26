"""/account/two-step/: setting up, listing and removing one's own and other users' second factors."""

import base64
from typing import Any

from allauth.mfa.adapter import get_adapter
from allauth.mfa.totp.internal.auth import generate_totp_secret
from allauth.mfa.utils import decrypt, encrypt
from django import forms
from django.http import HttpResponseBase
from django.urls import reverse
from django.utils.decorators import method_decorator
from django.views.decorators.debug import sensitive_post_parameters

from flagadmin.core.errors import ValidationError
from flagadmin.core.http.middleware import get_client_address
from groups.console import Breadcrumbs, ConfirmPage, FormPage, read_next_page
from groups.login.actions import describe_login
from groups.login.passwords import check_own_password
from groups.login.rules import can_use_password
from groups.one_time_secrets import ShowsSecretOnce
from groups.people.console import OneAccount, OwnPage
from groups.second_factor.actions import (
    SecretKeyChanged,
    add_app,
    add_passkey,
    check_code,
    describe_factor,
    find_own_factor,
    find_own_passkey,
    list_factor_names,
    make_recovery_codes,
    read_second_factors,
    remove_all_factors,
    remove_factor,
    rename_passkey,
)
from groups.second_factor.passkeys import has_passkeys
from groups.second_factor.required import NeedsConfirmation, confirm, is_required

CODE = forms.TextInput(
    attrs={"autocomplete": "one-time-code", "autocapitalize": "none", "spellcheck": "false", "size": 12}
)


class TwoStepPage(OwnPage):
    """A page below /account/two-step/."""

    def get_breadcrumbs(self) -> Breadcrumbs:
        return (*super().get_breadcrumbs(), ("Two-step verification", reverse("two-step")))


class OverviewPage(OwnPage):
    template_name = "second_factor/overview.html"
    title = "Two-step verification"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return super().get_context_data(
            factors=read_second_factors(self.user),
            passkeys_possible=has_passkeys(self.request),
            has_password=can_use_password(self.user),
            required=is_required(self.request, self.user),
            **kwargs,
        )


class ShowsCodesOnce(ShowsSecretOnce):
    """A page whose form makes recovery codes."""

    def show_codes(self, codes: list[str]) -> None:
        if codes:
            self.created = {"title": "Recovery codes", "secret": "\n".join(codes)}

    def show_secret(self, created: dict[str, str]) -> HttpResponseBase:
        self.template_name = "second_factor/codes.html"
        return super().show_secret(created)


class AppForm(forms.Form):
    setup = forms.CharField(widget=forms.HiddenInput)
    code = forms.CharField(label="Code", max_length=100, widget=CODE)


@method_decorator(sensitive_post_parameters("setup", "code"), name="dispatch")
class AddAppPage(NeedsConfirmation, ShowsCodesOnce, TwoStepPage, FormPage):
    """Shows a new key, also encrypted in the form, until a code proves that an app has it. Stores nothing
    before that.
    """

    template_name = "second_factor/app.html"
    title = "Set up an authenticator app"
    form_class = AppForm

    def get_initial(self) -> dict[str, Any]:
        return {"setup": encrypt(f"{self.user.pk} {generate_totp_secret()}")}

    def secret(self, form: Any) -> str:
        """The key in the form. Raises ValidationError if the form is another user's, or older than SECRET_KEY."""
        try:
            owner, _, secret = decrypt(form["setup"].value() or "").partition(" ")
        except SecretKeyChanged:
            owner = secret = ""
        if owner != str(self.user.pk):
            raise ValidationError("This form is out of date. Open the page again.")
        return secret

    def submit(self, form: Any) -> str:
        self.show_codes(add_app(self.user, self.secret(form), form.cleaned_data["code"], caller=self.caller))
        return reverse("two-step")

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        if "form" in kwargs:
            secret, adapter = self.secret(kwargs["form"]), get_adapter()
            url = adapter.build_totp_url(self.user, secret)
            svg = base64.b64encode(adapter.build_totp_svg(url).encode()).decode()
            kwargs |= {"key": " ".join(secret[at : at + 4] for at in range(0, len(secret), 4))}
            kwargs |= {"url": url, "picture": f"data:image/svg+xml;base64,{svg}"}
        return super().get_context_data(**kwargs)


class RecoveryCodesPage(NeedsConfirmation, ShowsCodesOnce, TwoStepPage, ConfirmPage):
    def plan(self) -> dict[str, Any]:
        left = read_second_factors(self.user).codes_left
        return {
            "title": "New recovery codes",
            "lead": "You get ten codes. Each works once, in place of your second factor.",
            "removed_items": [f"your recovery codes, of which {left} are left"] if left else [],
            "button": "Create recovery codes",
        }

    def act(self) -> tuple[str, str]:
        self.show_codes(make_recovery_codes(self.user, caller=self.caller))
        return "Your old recovery codes do not work any more.", reverse("two-step")


class RemoveFactorPage(NeedsConfirmation, TwoStepPage, ConfirmPage):
    def plan(self) -> dict[str, Any]:
        name = describe_factor(find_own_factor(self.user, self.kwargs["factor_id"]))
        factors = read_second_factors(self.user)
        is_last = bool(factors.app) + len(factors.passkeys) == 1
        way = describe_login(self.user, password="your password")
        consequence = (
            f"You will then log in {way} alone." if way else "You will then need a one-time link to log in."
        )
        return {
            "title": f"Remove {name}",
            "removed_items": [name, *(["your recovery codes"] if is_last else [])],
            "kept": consequence if is_last else "",
            "button": "Remove",
        }

    def act(self) -> tuple[str, str]:
        name = remove_factor(self.user, self.kwargs["factor_id"], caller=self.caller)
        return f"Removed: {name}.", reverse("two-step")


class ConfirmForm(forms.Form):
    password = forms.CharField(
        max_length=1000,
        strip=False,
        required=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "current-password", "autofocus": True}),
    )
    code = forms.CharField(
        max_length=100, required=False, label="Or a code of your second factor", widget=CODE
    )
    credential = forms.CharField(required=False, widget=forms.HiddenInput)


@method_decorator(sensitive_post_parameters("password", "code"), name="dispatch")
class ConfirmIdentityPage(OwnPage, FormPage):
    """/account/confirm/?next=/path/

    Imports the code for passkeys only for users who have one: it takes a tenth of a second.
    """

    template_name = "second_factor/confirm.html"
    title = "Confirm it's you"
    form_class = ConfirmForm

    def get_form(self, form_class: type[forms.BaseForm] | None = None) -> forms.BaseForm:
        form, factors = super().get_form(form_class), read_second_factors(self.user)
        if not self.user.has_usable_password():
            del form.fields["password"]
            form.fields["code"].label = "Code of your second factor"
        if factors.codes_left is None:
            del form.fields["code"]
        return form

    def submit(self, form: Any) -> str:
        address = get_client_address(self.request)
        if credential := form.cleaned_data["credential"]:
            from groups.second_factor.passkeys import verify_passkey

            verify_passkey(self.user, credential).record_usage()
            confirm(self.request, self.user, how="mfa")
        elif code := form.cleaned_data.get("code"):
            check_code(self.user, code, address=address)
            confirm(self.request, self.user, how="mfa")
        else:
            check_own_password(
                self.user, form.cleaned_data.get("password", ""), path="password", address=address
            )
            confirm(self.request, self.user, how="password")
        return read_next_page(self.request) or reverse("account")

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        if read_second_factors(self.user).passkeys and has_passkeys(self.request):
            from groups.second_factor.passkeys import begin_authentication

            kwargs["options"] = begin_authentication(self.user)
        return super().get_context_data(next=read_next_page(self.request), **kwargs)


class NameForm(forms.Form):
    name = forms.CharField(max_length=100, help_text="For example: Work laptop")


class NewPasskeyForm(NameForm):
    credential = forms.CharField(required=False, widget=forms.HiddenInput)


class AddPasskeyPage(NeedsConfirmation, ShowsCodesOnce, TwoStepPage, FormPage):
    template_name = "second_factor/passkey.html"
    title = "Add a passkey"
    form_class = NewPasskeyForm

    def submit(self, form: Any) -> str:
        from groups.second_factor.passkeys import verify_new_credential

        data = form.cleaned_data
        credential = verify_new_credential(data["credential"])
        codes = add_passkey(self.user, data["name"], credential, caller=self.caller)
        self.show_codes(codes)
        return self.done(f"Passkey {data['name']} added.", reverse("two-step"))

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        if "form" in kwargs and has_passkeys(self.request):
            from groups.second_factor.passkeys import begin_registration

            kwargs["options"] = begin_registration(self.user)
        return super().get_context_data(**kwargs)


class RenamePasskeyPage(NeedsConfirmation, TwoStepPage, FormPage):
    template_name = "second_factor/rename.html"
    title = "Rename passkey"
    form_class = NameForm

    def find(self) -> None:
        self.passkey = find_own_passkey(self.user, self.kwargs["factor_id"])

    def get_initial(self) -> dict[str, Any]:
        return {"name": self.passkey.data["name"]}

    def submit(self, form: Any) -> str:
        rename_passkey(self.user, self.passkey.pk, form.cleaned_data["name"], caller=self.caller)
        return reverse("two-step")


class RemoveFactorsOf(OneAccount, ConfirmPage):
    def plan(self) -> dict[str, Any]:
        user = self.account()
        refusal = (
            "Change your own second factors on your account's page." if user.pk == self.caller.id else ""
        )
        names = list_factor_names(user)
        return {
            "title": f"Remove the second factors of {user.display_name}",
            "lead": "Make sure that the request really comes from them: afterwards a login takes one step.",
            "removed_items": names,
            "kept": "Their sessions and tokens keep working.",
            "button": "Remove second factors",
            "blocked": refusal or ("" if names else f"{user.display_name} has no second factor."),
        }

    def act(self) -> tuple[str, str]:
        user = remove_all_factors(self.user_id, caller=self.caller)
        return f"Removed the second factors of {user}.", self.url
