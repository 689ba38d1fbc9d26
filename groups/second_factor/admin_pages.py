"""/access/people/ID/two-step/remove/: removes the second factors of someone who has lost their phone."""

from typing import Any

from groups.console import ConfirmPage
from groups.people.console import OneAccount
from groups.second_factor.actions import remove_all_factors
from groups.second_factor.queries import list_factor_names


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
            "cancel": self.url,
            "blocked": refusal or ("" if names else f"{user.display_name} has no second factor."),
        }

    def act(self) -> tuple[str, str]:
        user = remove_all_factors(self.user_id, caller=self.caller)
        return f"Removed the second factors of {user}.", self.url
