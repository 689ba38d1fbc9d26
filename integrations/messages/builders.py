"""Maps each provider to the function that writes its messages."""

from typing import Any

from integrations.messages.chat import make_mail, make_slack_app, make_slack_webhook, make_teams
from integrations.messages.message import Message
from integrations.messages.outgoing import (
    Builder,
    Mail,
    Outgoing,
    add_custom_headers,
    make_datadog,
    make_new_relic,
    make_webhook,
)
from integrations.providers import PROVIDERS, Provider

_BUILDERS: dict[str, Builder] = {
    "webhook": make_webhook,
    "slack-app": make_slack_app,
    "slack": make_slack_webhook,
    "teamsworkflow": make_teams,
    "email": make_mail,
    "datadog": make_datadog,
    "new-relic": make_new_relic,
}
assert _BUILDERS.keys() == PROVIDERS.keys()


def make_request(provider: Provider, parameters: dict[str, Any], message: Message) -> Outgoing | Mail:
    """``parameters``: all of them, with the secrets."""
    request = _BUILDERS[provider.name](parameters, message)
    if isinstance(request, Outgoing):
        add_custom_headers(request, str(parameters.get("customHeaders") or ""))
    return request
