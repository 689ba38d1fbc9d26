"""The supported products, and recognition of a file's product."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any

from flagadmin.core import errors
from flagadmin.core.wording import choices
from importer.body.schemas import check_state_file
from importer.converting import flagd, flagsmith, gofeatureflag, growthbook, launchdarkly, openfeature
from importer.converting.files import read_with_notes
from importer.converting.flags import Source


@dataclass(frozen=True, slots=True)
class Product:
    """``recognize`` tells whether a document is this product's; ``read`` reads it, for one of its environments."""

    name: str
    title: str
    recognize: Callable[[Any], bool]
    read: Callable[[Any, str], Source]

    @classmethod
    def of(cls, module: ModuleType) -> Product:
        return cls(module.NAME, module.TITLE, module.recognize, module.read)


_FLAGD_CBOR = Product("flagd-cbor", flagd.TITLE, lambda document: False, flagd.read_hashing_cbor)
_MODULES = (launchdarkly, flagsmith, growthbook, flagd, gofeatureflag, openfeature)
PRODUCTS = {product.name: product for product in (*map(Product.of, _MODULES), _FLAGD_CBOR)}
TITLES = ", ".join(dict.fromkeys(product.title for product in PRODUCTS.values()))


def read_source(content: bytes, *, product: str = "", file_name: str = "", environment: str = "") -> Source:
    """The flags of a file of this product, or of the recognized one. Raises ValidationError."""
    document, notes = read_with_notes(content, file_name)
    if product and product not in PRODUCTS:
        message = f"{product} is not a product whose files can be converted. Available: {choices(PRODUCTS)}"
        raise errors.ValidationError.at("source", message)
    recognized = recognize(document)
    if product and recognized and recognized.title != PRODUCTS[product].title:
        message = f"is {product}, but this is a file of {recognized.title}"
        raise errors.ValidationError.at("source", message)
    chosen = PRODUCTS[product] if product else recognized
    if chosen is None:
        raise errors.ValidationError(f"This is not a file of a product that can be converted: {TITLES}.")
    source = chosen.read(document, environment)
    return replace(source, notes=(*source.notes, *notes))


def recognize(document: Any) -> Product | None:
    """The product of this document; None if it is none of them, or an export of Unleash or flagadmin.

    Raises ValidationError for a state file of Unleash 4.
    """
    check_state_file(document)
    if not isinstance(document, dict | list) or is_export(document):
        return None
    return next((product for product in PRODUCTS.values() if product.recognize(document)), None)


def is_export(document: Any) -> bool:
    """Whether an import accepts the document unchanged."""
    if not isinstance(document, dict):
        return False
    data = document.get("data", document)
    return isinstance(data, dict) and isinstance(data.get("features"), list)
