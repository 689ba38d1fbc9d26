"""The two roles of the bundled server, and which accounts of this machine may use them."""

from flagadmin.db.bundled.account import Account, accounts_let_in

SUPERUSER = "flagadmin"  # made by initdb; prepares the databases at each start
APPLICATION = "flagadmin_app"  # owns its database; not a superuser


def access_files(account: Account | None) -> dict[str, str]:
    """The contents of PostgreSQL's `hba` and `ident` files for a server that ``account`` runs.

    Connections are let in by the account of their process: root and whoever owns the data, never `nobody`.
    """
    allowed = sorted(accounts_let_in(account))
    ident = [f'flagadmin "{name}" {role}\n' for name in allowed for role in (SUPERUSER, APPLICATION)]
    return {"hba": "local all all peer map=flagadmin\n", "ident": "".join(ident)}
