"""The providers of integrations: each ``Provider`` of a module here, with all that is said of it.

Forms, pages, the API, its document, and deliveries list ``PROVIDERS``.
"""

from importlib import import_module
from pkgutil import iter_modules

from integrations.providers.provider import MASK, Parameter, Provider

__all__ = ["DEPRECATED", "MASK", "PROVIDERS", "Parameter", "Provider"]


def find_providers() -> dict[str, Provider]:
    """The providers by name, in the order of their labels."""
    modules = [import_module(f"{__name__}.{module.name}") for module in iter_modules(__path__)]
    found = [each for module in modules for each in vars(module).values() if isinstance(each, Provider)]
    return {provider.name: provider for provider in sorted(found, key=lambda each: each.display_name)}


PROVIDERS = find_providers()
DEPRECATED = {
    "teams": "This integration is deprecated. Please try the new Microsoft Teams - Workflow integration instead.",
}
