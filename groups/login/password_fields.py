"""Form fields for passwords, which browsers and password managers fill in."""

from typing import Any, Literal

from django import forms


class PasswordField(forms.CharField):
    def __init__(self, autocomplete: Literal["current-password", "new-password"], **kwargs: Any) -> None:
        widget = forms.PasswordInput(attrs={"autocomplete": autocomplete})
        super().__init__(max_length=1000, strip=False, widget=widget, **kwargs)


class NewPasswordField(PasswordField):
    def __init__(self, **kwargs: Any) -> None:
        super().__init__("new-password", help_text="At least 8 characters, not a common password.", **kwargs)
