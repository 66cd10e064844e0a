"""The one error of the laboratory's own: a run that says nothing about the rules, because it could not be made."""

from __future__ import annotations


class RunFailed(RuntimeError):
    """The run could not be made or not be finished; no figure of it may be used."""
