"""`counterfoil brief`: what must not be repeated, for a model's prompt; nothing where nothing is unresolved."""

from __future__ import annotations

import argparse

from counterfoil.cli import exits, parser


def add(verb: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    verb.add_argument("--tenant", metavar="NAME", help="whose effects (default: all tenants that have any, in turn)")
    verb.add_argument(
        "--account", metavar="NAME", action="append", help="only accounts the caller may touch; may be given again"
    )
    parser.store_option(verb)
    parser.actions_option(verb)


def run(asked: argparse.Namespace) -> int:
    """Do it and return the exit code."""
    from counterfoil.cli.opening import for_reading
    from counterfoil.cli.terminal import print_json

    accounts = tuple(asked.account) if asked.account else None
    with for_reading(asked) as ledger:
        unresolved = ledger.store.unresolved()
        tenants = [asked.tenant] if asked.tenant is not None else sorted({o.tenant for o in unresolved})
        told = {tenant: ledger.briefing(tenant=tenant, accounts=accounts) for tenant in tenants}
    if asked.json:
        mine = [o for o in unresolved if o.tenant in tenants and (accounts is None or o.account in accounts)]
        print_json({"unresolved": len(mine), "briefing": "".join(told.values()), "tenants": told})
    else:
        print("".join(told.values()), end="", flush=True)
    return exits.DONE
