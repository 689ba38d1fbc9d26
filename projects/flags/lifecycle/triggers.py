"""Database triggers that advance a flag's lifecycle when SDKs report usage.

A flag enters pre-live when an SDK first uses it, and live when one does in a production environment. Triggers
need no extra statement for each report.

SDKs report usage late, and their clocks may be wrong. So usage never adds a stage that precedes one the flag
already has, and no stage is dated before an earlier stage.
"""

import pgtrigger

_ENTER_BY_USAGE = """
    INSERT INTO projects_lifecyclestage (flag_id, stage, entered_at)
    WITH used AS (
        SELECT r.flag_id, e.type = 'production' AS live, min(r.seen_at) AS seen_at
          FROM new_rows r JOIN projects_environment e ON e.name = r.environment GROUP BY 1, 2
    ), reached AS (
        SELECT flag_id, live, max(seen_at) OVER (PARTITION BY flag_id ORDER BY live) AS seen_at FROM used
    )
    SELECT r.flag_id, CASE WHEN r.live THEN 'live' ELSE 'pre-live' END, greatest(r.seen_at, (
               SELECT max(s.entered_at) FROM projects_lifecyclestage s WHERE s.flag_id = r.flag_id))
      FROM reached r
     WHERE NOT EXISTS (
           SELECT FROM projects_lifecyclestage s WHERE s.flag_id = r.flag_id
              AND (s.stage IN ('live', 'completed', 'archived') OR (s.stage = 'pre-live' AND NOT r.live)))
     ORDER BY 1, 2
    ON CONFLICT DO NOTHING;
    RETURN NULL;
"""


def make_lifecycle_triggers() -> list[pgtrigger.Trigger]:
    """Triggers on last-seen rows.

    They fire on updates too, so that a flag goes live again after it is revived or no longer completed.
    """
    return [
        _make_trigger("lifecycle_stage", pgtrigger.Insert),
        _make_trigger("lifecycle_stage_again", pgtrigger.Update),
    ]


def _make_trigger(name: str, operation: pgtrigger.Operation) -> pgtrigger.Trigger:
    return pgtrigger.Trigger(
        name=name,
        level=pgtrigger.Statement,
        when=pgtrigger.After,
        operation=operation,
        referencing=pgtrigger.Referencing(new="new_rows"),
        func=_ENTER_BY_USAGE,
    )
