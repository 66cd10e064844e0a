"""Worlds: the real ledger, store and worker among virtual processes, a virtual clock and providers that misbehave."""
