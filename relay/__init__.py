"""`flagadmin relay`: serves SDKs near them, from a copy of what a server says. Needs no Django and no database."""
