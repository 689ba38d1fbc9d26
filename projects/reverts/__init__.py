"""Restores versions of a flag, and reverts single changes.

A version is the state of a flag in all environments at a moment (`projects/history/definitions_at.py`).
`environment_plan.py` compares it with the present part by part, and `parts.py` determines the obstacles and the
permissions for each part. `actions.py` locks the flag, plans again and writes the chosen parts with one event, which
has the whole flag before and after. A removed strategy gets its old id back.

`environment_plan.py` compares all flags of an environment with a moment, each by one part, to set the environment back.

Reverting one change keeps later changes, so it has its own plan: `change_plan.py` uses `without` of `projects/states/`,
which compares the flag before the change, after it and now; a member that has changed again is a conflict. Undo buttons
(`change_plan.py`), *Revert* in lists of changes and the API all use this mechanism.
"""
