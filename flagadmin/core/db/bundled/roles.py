"""The two database roles of the bundled PostgreSQL server, and the system accounts that may use them."""

from flagadmin.core.db.bundled.account import Account, list_accounts_let_in

SUPERUSER = "flagadmin"  # created by initdb; prepares the databases at each start
APPLICATION = "flagadmin_app"  # owns its database; not a superuser


def access_files(account: Account | None) -> dict[str, str]:
    """The contents of PostgreSQL's `hba` and `ident` files for a server run by `account`.

    Connections are authenticated by the account of their process: root and the owner of the data, never `nobody`.
    """
    allowed = sorted(list_accounts_let_in(account))
    ident = [f'flagadmin "{name}" {role}\n' for name in allowed for role in (SUPERUSER, APPLICATION)]
    return {"hba": "local all all peer map=flagadmin\n", "ident": "".join(ident)}
