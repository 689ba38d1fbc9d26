"""Evaluates contexts of the frontend API and of OFREP, in the event loop if possible.

`shortcuts.py` remembers the token and headers of Django's answer, while the watcher sees the token and its projects
unchanged. It takes flags from the snapshot cache. Django answers if flags are not compiled yet, are many, or were slow
several times in succession, and returns all errors. `prepared.py` wraps a snapshot; its digest of revisions and used
context fields is the ETag, so that a 304 needs no evaluation. It also keeps results by context in two halves, and drops
the older half. After a change, only the changed flags are evaluated for a known context. An answer of OFREP is written
once for each way to decide, as a template with slots for what the context changes. The views call the same functions
(`prepared.py`, `sdk/ofrep/answers.py`).
`playground/engine/active.py` finds the flags that are on without reasons: conditions of a strategy are a bit set, and
only strategies whose conditions hold are hashed.
"""
