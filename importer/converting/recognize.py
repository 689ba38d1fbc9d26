"""The products whose files can be converted, and which of them a file is of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from flagadmin.core import errors
from flagadmin.core.wording import choices
from importer.converting import flagd, flagsmith, gofeatureflag, growthbook, launchdarkly, openfeature
from importer.converting.files import read_document
from importer.converting.flags import Source


@dataclass(frozen=True, slots=True)
class Product:
    """``recognize`` says whether a document is of this product; ``read`` reads it, of one of its environments."""

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
    """The flags of a file of this product, or of the one whose file it is. Raises ValidationError."""
    document = read_document(content, file_name)
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
    return chosen.read(document, environment)


def recognize(document: Any) -> Product | None:
    """The product whose file this is; None if it is none of them, or an export of Unleash's or flagadmin's."""
    if not isinstance(document, dict | list) or is_export(document):
        return None
    return next((product for product in PRODUCTS.values() if product.recognize(document)), None)


def is_export(document: Any) -> bool:
    """Whether an import accepts the document as it is."""
    if not isinstance(document, dict):
        return False
    data = document.get("data", document)
    return isinstance(data, dict) and isinstance(data.get("features"), list)
