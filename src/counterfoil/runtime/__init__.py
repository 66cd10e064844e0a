"""Carrying plans out: drivers, the ledger, the worker."""
