"""The same migrations for PostgreSQL, one for one."""
