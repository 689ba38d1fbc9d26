"""The states of flags, and the one language of their changes. Pure: no database, no clock, no framework.

Everything that changes flags has a wanted state: ``changes(now, wanted)`` lead there, ``permissions`` are needed for
them, and ``apply`` predicts them. ``match`` pairs replaced strategies. ``without`` reverts one change and keeps all
later ones.
"""

from projects.states.document import (
    DETAIL_MEMBERS,
    MAX_SORT_ORDER,
    NOTHING,
    Change,
    EnvironmentState,
    FlagState,
    Part,
    SegmentState,
    by_environment,
    change_strategy,
    get_content,
    has_enabled,
    in_order,
    list_fresh_ids,
    match,
    next_sort_order,
    turn_on,
    with_environments,
    with_strategies,
)
from projects.states.language import (
    IN_ENVIRONMENT,
    PERMISSIONS,
    apply,
    apply_there,
    change_parents,
    changes,
    changes_there,
    describe,
    is_changed_again,
    permissions,
    without,
)
