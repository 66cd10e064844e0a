"""Crash images: what a power cut may leave of a receipts file, at every boundary of the real store's writing."""

from __future__ import annotations
