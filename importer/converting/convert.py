"""Converts files of other products to a body that imports accept, and reports how exact each flag is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from types import ModuleType
from typing import Any

import orjson

from flagadmin.core import errors
from flagadmin.core.document import Document
from flagadmin.core.errors import choices
from importer.body.schemas import check_state_file
from importer.converting import flagd, flagsmith, gofeatureflag, growthbook, launchdarkly, openfeature
from importer.converting.conditions import Unsupported
from importer.converting.files import read_with_notes
from importer.converting.flags import Flag, Note, Parent, Share, Source
from importer.converting.strategies import Choice, Strategies
from projects.flags.name_rules import find_name_problem
from projects.rules import Limits


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


TAG_TYPE = "simple"
BUILT_IN = frozenset({"userId", "sessionId", "environment", "appName", "currentTime"})
"""Context fields that every installation has."""


class Missing(StrEnum):
    """The treatment of a flag with a part that has no equivalent here."""

    OFF = "off"
    LEAVE_OUT = "leave-out"


class Exactness(StrEnum):
    EXACT = "exact"
    APPROXIMATE = "approximate"
    OFF = "imported off"
    LEFT_OUT = "left out"


@dataclass(frozen=True, slots=True)
class Options:
    """``choices`` are for single flags. ``environment`` is one of the source's, if it has several."""

    choice: Choice = Choice.NEW
    choices: Mapping[str, Choice] = field(default_factory=dict)
    missing: Missing = Missing.OFF
    environment: str = ""

    def get_choice(self, flag: Flag) -> Choice:
        return self.choices.get(flag.name, self.choice)


@dataclass(slots=True)
class ConvertedFlag:
    """The result of converting a flag. ``has_percentages``: a choice can be made for it."""

    source: Flag
    exactness: Exactness
    notes: list[Note]
    choice: Choice
    strategies: list[Document] = field(default_factory=list)

    @property
    def name(self) -> str:
        return self.source.name

    @property
    def is_enabled(self) -> bool:
        is_off = self.exactness is Exactness.OFF or self.source.archived
        return self.source.enabled and not is_off

    @property
    def has_percentages(self) -> bool:
        return any(is_partial(split.shares) for split in self.source.splits)

    def document(self, users: Document | None = None) -> Document:
        """``{name, path, exactness, notes: [{kind, message}], percentages?, users?}``"""
        return {
            "name": self.name,
            "path": self.source.path,
            "exactness": self.exactness,
            "notes": [{"kind": note.kind, "message": note.sentence} for note in self.notes],
            **({"percentages": self.choice} if self.has_percentages else {}),
            **({"users": users} if users else {}),
        }


@dataclass(frozen=True, slots=True)
class Conversion:
    source: Source
    flags: list[ConvertedFlag]
    segments: Mapping[str, tuple[int, list[Document]]]
    notes: tuple[str, ...] = ()

    @property
    def counts(self) -> dict[Exactness, int]:
        return {each: sum(flag.exactness is each for flag in self.flags) for each in Exactness}

    def dump(self) -> bytes:
        """The body in the format of an export."""
        return orjson.dumps(export_document(self))

    def document(
        self, users: Mapping[str, Document], flags: Sequence[ConvertedFlag] | None = None
    ) -> Document:
        """The report of all flags or some. ``users``: the changes by flag."""
        return {
            "product": self.source.product,
            "counts": {str(exactness): count for exactness, count in self.counts.items()},
            "notes": list(self.notes),
            "flags": [
                flag.document(users.get(flag.name)) for flag in (self.flags if flags is None else flags)
            ],
        }


def is_partial(shares: Sequence[Share]) -> bool:
    return len({share.outcome for share in shares if share.weight}) > 1


def convert_file(
    content: bytes,
    *,
    product: str = "",
    file_name: str = "",
    options: Options = Options(),
    identifiers: Mapping[str, Sequence[str]] | None = None,
) -> Conversion:
    """The conversion of a file of this product, or of the recognized one.

    ``identifiers`` are those of users, by context field. Raises ValidationError with the path of each problem.
    """
    source = read_source(content, product=product, file_name=file_name, environment=options.environment)
    return convert(source, options, identifiers or {})


def convert(source: Source, options: Options, identifiers: Mapping[str, Sequence[str]]) -> Conversion:
    writer = Strategies(Limits.from_settings())
    flags = [_convert_flag(flag, writer, options, identifiers) for flag in source.flags]
    _check_names(flags)
    _check_parents(flags, options)
    used = {number for flag in flags for strategy in flag.strategies for number in strategy["segments"]}
    segments = {name: segment for name, segment in writer.segments.items() if segment[0] in used}
    renamed = (
        f"The context field {local_name} is {source_name} in the source."
        for source_name, local_name in source.renamed.items()
    )
    return Conversion(source, flags, segments, (*source.notes, *renamed))


def _convert_flag(
    flag: Flag, writer: Strategies, options: Options, identifiers: Mapping[str, Sequence[str]]
) -> ConvertedFlag:
    choice = options.get_choice(flag)
    converted = ConvertedFlag(flag, Exactness.EXACT, [], choice)
    if flag.missing:
        _give_up(converted, flag.missing, options)
        return converted
    if choice is Choice.FINISH and converted.has_percentages:
        sentence = "Left out until its rollout is finished: 0 and 100 % can be converted exactly."
        converted.exactness, converted.notes = Exactness.LEFT_OUT, [Note("percentages", sentence)]
        return converted
    try:
        converted.strategies = writer.make(flag, choice, identifiers)
    except Unsupported as error:
        _give_up(converted, [Note("conditions", str(error))], options)
        return converted
    if converted.has_percentages:
        flag.add_difference("percentages", _PERCENTAGES[choice])
    if not converted.strategies:  # an import would add the default strategy, which is on for everyone
        flag.enabled = False
    converted.notes = list(dict.fromkeys(flag.differences))
    converted.exactness = Exactness.APPROXIMATE if converted.notes else Exactness.EXACT
    return converted


_PERCENTAGES = {
    Choice.NEW: "Its percentages are other users here, because the hash is another.",
    Choice.KEEP: "The users of your file keep what they have; other users get it once you raise the rollout.",
    Choice.BOTH: "The users of your file keep what they have, and as many users as before get it anew.",
}


def _give_up(converted: ConvertedFlag, reasons: list[Note], options: Options) -> None:
    is_off = options.missing is Missing.OFF
    converted.exactness = Exactness.OFF if is_off else Exactness.LEFT_OUT
    converted.notes, converted.strategies = list(dict.fromkeys(reasons)), []


def _check_names(flags: Sequence[ConvertedFlag]) -> None:
    names = set[str]()
    for flag in flags:
        fault = "is there twice" if flag.name in names else find_name_problem(flag.name)
        names.add(flag.name)
        if fault:
            flag.exactness, flag.strategies = Exactness.LEFT_OUT, []
            flag.notes = [Note("name", f"It cannot have this name here: {fault}.".replace("..", "."))]


def _check_parents(flags: Sequence[ConvertedFlag], options: Options) -> None:
    """Checks that parents are included too, and have none themselves."""
    by_name = {flag.name: flag for flag in reversed(flags)}  # of duplicates, the second is left out
    for flag in flags:
        if flag.exactness not in (Exactness.EXACT, Exactness.APPROXIMATE):
            continue
        for parent in flag.source.parents:
            if fault := _find_parent_fault(by_name.get(parent.flag), parent.flag):
                _give_up(flag, [Note("prerequisite", fault)], options)
                break


def _find_parent_fault(parent: ConvertedFlag | None, name: str) -> str:
    if parent is None:
        return f"Its prerequisite {name} is not in the file."
    if parent.exactness in (Exactness.OFF, Exactness.LEFT_OUT):
        return f"Its prerequisite {name} is {parent.exactness}."
    if parent.source.archived:
        return f"Its prerequisite {name} is archived, which a parent cannot be."
    if parent.source.parents:
        return f"Its prerequisite {name} has a prerequisite itself, which a parent cannot have."
    return ""


# The body --------------------------------------------------------------------------------------------------


def export_document(conversion: Conversion) -> Document:
    """The flags in the format of an export."""
    flags = [flag for flag in conversion.flags if flag.exactness is not Exactness.LEFT_OUT]
    strategies = [strategy for flag in flags for strategy in flag.strategies]
    segments = [
        {"id": number, "name": name, "constraints": constraints}
        for name, (number, constraints) in conversion.segments.items()
    ]
    return {
        "features": [_make_feature(flag.source) for flag in flags],
        "featureStrategies": strategies,
        "featureEnvironments": [
            {"name": flag.name, "featureName": flag.name, "enabled": flag.is_enabled, "variants": []}
            for flag in flags
        ],
        "contextFields": list(_make_context_fields(strategies, segments)),
        "featureTags": [
            {"featureName": flag.name, "tagType": TAG_TYPE, "tagValue": tag}
            for flag in flags
            for tag in flag.source.tags
        ],
        "segments": segments,
        "tagTypes": [{"name": TAG_TYPE, "description": ""}] if any(f.source.tags for f in flags) else [],
        "dependencies": [
            {"feature": flag.name, "dependencies": [_make_parent(parent) for parent in flag.source.parents]}
            for flag in flags
            if flag.source.parents and flag.exactness is not Exactness.OFF
        ],
    }


def _make_feature(flag: Flag) -> Document:
    return {
        "name": flag.name,
        "description": flag.description or None,
        "type": flag.type,
        "archived": flag.archived,
    }


def _make_parent(parent: Parent) -> Document:
    return {"feature": parent.flag, "enabled": parent.enabled, "variants": list(parent.variants)}


def _make_context_fields(strategies: Sequence[Document], segments: Sequence[Document]) -> Iterator[Document]:
    """The fields that the flags use and that not every installation has."""
    owners = (*strategies, *segments)
    compared = {constraint["contextName"] for owner in owners for constraint in owner["constraints"]}
    sticky = {strategy["parameters"]["stickiness"] for strategy in strategies} - {"default", "random"}
    for name in sorted((compared | sticky) - BUILT_IN):
        if not find_name_problem(name):  # SDKs may send any field, even one that cannot be listed
            yield {"name": name, "stickiness": name in sticky}
