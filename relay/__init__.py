"""`flagadmin relay`: serves SDKs close to them from a copy of a server's flags. Needs neither Django nor a database."""
