"""Tells each worker what has changed in the database, without a query for each request."""
