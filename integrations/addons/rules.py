"""Rules for integrations."""

from collections.abc import Iterator
from typing import Any

from django.core.exceptions import ValidationError as DjangoValidationError
from django.core.validators import validate_email

from flagadmin.core.errors import Problem
from flagadmin.core.http.outside import is_url, split_url
from integrations.messages.chat import split_names
from integrations.messages.outgoing import TemplateError, parse
from integrations.providers import DEPRECATED, PROVIDERS, Parameter

_IN_HEADERS = frozenset({"contentType", "authorization", "apiKey", "licenseKey", "accessToken"})
MAX_LENGTH = 10_000  # characters of a value
MAX_RECIPIENTS = 20


def find_provider_problems(name: str) -> Iterator[Problem]:
    if name in DEPRECATED:
        yield Problem("provider", DEPRECATED[name])
    elif name not in PROVIDERS:
        yield Problem("provider", f"Unknown addon provider {name[:100]}. Available: {', '.join(PROVIDERS)}.")


def parameter_problems(provider: str, values: dict[str, Any]) -> Iterator[Problem]:
    """``values``: all parameters, including the kept secrets."""
    known = PROVIDERS[provider].parameters
    missing = [parameter.name for parameter in known if parameter.required and not values.get(parameter.name)]
    if missing:
        yield Problem("parameters", f"Missing required parameters: {','.join(missing)}")
    for parameter in known:
        if value := values.get(parameter.name):
            for message in _find_value_problems(parameter, str(value)):
                yield Problem(f"parameters.{parameter.name}", message)
    for name in values.keys() - {parameter.name for parameter in known}:
        yield Problem(f"parameters.{name}", f"is not a parameter of {provider}")


def tag_problems(tags: list[str]) -> Iterator[Problem]:
    for position, tag in enumerate(tags):
        if not all(part.strip() for part in tag.partition(":")):
            yield Problem(
                f"tags[{position}]", f"{tag[:100]!r} is no tag: write its type and value as team:checkout"
            )


def _find_value_problems(parameter: Parameter, value: str) -> Iterator[str]:
    if len(value) > MAX_LENGTH:
        yield f"must have at most {MAX_LENGTH:,} characters"
    elif parameter.type == "url" and not is_url(value):
        yield "must be a URL like https://example.com/path"
    elif parameter.name == "recipients":
        yield from _find_recipient_problems(split_names(value))
    elif parameter.name in _IN_HEADERS and not (value.isascii() and value.isprintable()):
        yield "must only have printable ASCII characters, because it is sent in a header"
    elif parameter.name == "bodyTemplate":
        try:
            parse(value)
        except TemplateError as error:
            yield str(error)


def _find_recipient_problems(addresses: list[str]) -> Iterator[str]:
    if not 1 <= len(addresses) <= MAX_RECIPIENTS:
        yield f"must be 1 to {MAX_RECIPIENTS} addresses, separated by commas"
    for address in addresses:
        try:
            validate_email(address)
        except DjangoValidationError:
            yield f"{address[:100]} is not an email address"


def leads_elsewhere(url: str, other: str) -> bool:
    """Whether the URLs lead to different servers. A stored secret must not silently go to another one."""
    first, second = split_url(url), split_url(other)
    if first is None or second is None:
        return True
    return (first.scheme, first.netloc) != (second.scheme, second.netloc)
