"""Providers as the facts describe them, playable at a virtual time; written and read without any contract."""
