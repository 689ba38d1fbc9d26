"""Sends SDKs only the changes since their version.

`states.py` reads the token's environment, projects and revisions in one query. In each worker, `states.py` keeps the
content and history of the scopes that clients have asked for. If revisions have changed, it reads the changed
flags in one `REPEATABLE READ` transaction, and `states.py` finds or creates the id of the new state in the
table `projects_sdkversion`. Workers need not communicate: revisions only increase, so one of two states is later, and a
worker that has read too early reads again. `history.py` compares the bytes of flags with each version that this worker
has seen. For any other id, it sends the complete state.
"""
