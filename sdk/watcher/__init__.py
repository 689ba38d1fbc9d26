"""Tells each worker about changes in the database, without a query for each request.

It reads the revisions of all projects and the tokens in use whenever a commit notifies it
(`flagadmin/core/db/commits.py`), and otherwise twice a second, or every three seconds while no stream is open and
there was no request for 90 s. `watcher.state` is None unless the last read began less than a second ago, so its users
refuse a revoked token and see a change within a second, even if notifications are lost. A notification, and a commit by
any process on this machine (`flagadmin/core/db/commits.py`), reset it to None until the next read.

Each read also tells `groups/tokens.py` the callers of the admin API that are in use. `watcher.use(token_id)`
keeps a token in `state.tokens`; `watcher.subscribe` registers a callback for changes.
"""
