"""Evaluates flags for a context, compares two states for many contexts, and keeps saved contexts.

A request: `api.py` parses the body (`request.py`), which reports all errors at once. `comparison/past.py` loads the
present or past snapshots. `projects/revision.py` reads the revisions of all readable projects in one query, and
`snapshot_cache.py` returns the flags compiled at exactly these revisions, or compiles the changed ones.
`projects/definitions.py` reads definitions in one `REPEATABLE READ` transaction, one table in each statement and by
ids: the planner's statistics are wrong after a large import, so that a join could compare all rows with all others.
`engine/evaluator.py` evaluates all strategies together (`engine/batch.py`), and `response/writer.py` writes the
response as bytes, most of which were serialized when the flag was compiled.
"""
