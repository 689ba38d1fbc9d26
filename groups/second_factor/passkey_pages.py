"""/account/two-step/passkeys/: adding and renaming passkeys."""

from typing import Any

from django import forms
from django.contrib import messages
from django.urls import reverse

from groups.console import FormPage
from groups.second_factor.actions import add_passkey, find_own_passkey, rename_passkey
from groups.second_factor.confirmation import NeedsConfirmation
from groups.second_factor.host import has_passkeys
from groups.second_factor.pages import ShowsCodesOnce, TwoStepPage


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
        messages.success(self.request, f"Passkey {data['name']} added.")
        return reverse("two-step")

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
