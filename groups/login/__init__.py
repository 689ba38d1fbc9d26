"""Logs people in.

`pages.py` checks the password after the throttle has counted the attempt (`passwords.py`), and `flow.py` passes the
login to allauth's stages. One-time links, passkeys and the identity provider (`sign_on/`) join the same path there. In
`sign_on/`, `provider.py` checks the ID token, and `accounts.py` finds, links or creates the account and sets groups and
the root role from the claim. `groups/second_factor/required.py` is the only stage: it keeps the login in the session
until a code or a passkey completes it. `flow.py` then records the event and redirects; `groups/sessions/` notes the
session on Django's own signal.
"""
