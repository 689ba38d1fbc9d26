"""The rules of flags, in one place: the API, the console, the admin site and the import all ask here.

Two kinds of functions, both pure: ``x_document`` brings what was given into the form that is stored (texts for
numbers, defaults filled in, weights adding up), ``x_problems`` tells what is wrong with such a document. What they
need to know of the database comes in a :class:`Vocabulary`, read once for any number of flags.

Documents are those of the API: ``contextName``, ``weightType``. That members have the right JSON types is the
business of the serializers and of the import's wire format; the rules come after.
"""

from projects.validation.constraints import (
    UnreadableValue,
    constraint_document,
    constraint_problems,
    constraints_problems,
)
from projects.validation.dependencies import (
    FlagPlace,
    Wish,
    dependency_document,
    dependency_problems,
)
from projects.validation.limits import Limits
from projects.validation.links import link_problems, normalised_url
from projects.validation.names import name_problem, pattern_problem
from projects.validation.refusal import check_problems
from projects.validation.strategies import (
    StrategyDefaults,
    default_strategy_document,
    segments_problems,
    strategy_document,
    strategy_problems,
    strategy_warnings,
)
from projects.validation.tags import tag_problems
from projects.validation.texts import text_of
from projects.validation.variants import variants_document, variants_problems
from projects.validation.vocabulary import Vocabulary, load_vocabulary

__all__ = [
    "FlagPlace",
    "Limits",
    "StrategyDefaults",
    "UnreadableValue",
    "Vocabulary",
    "Wish",
    "check_problems",
    "constraint_document",
    "constraint_problems",
    "constraints_problems",
    "default_strategy_document",
    "dependency_document",
    "dependency_problems",
    "link_problems",
    "load_vocabulary",
    "name_problem",
    "normalised_url",
    "pattern_problem",
    "segments_problems",
    "strategy_document",
    "strategy_problems",
    "strategy_warnings",
    "tag_problems",
    "text_of",
    "variants_document",
    "variants_problems",
]
