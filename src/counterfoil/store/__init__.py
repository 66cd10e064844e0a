"""Durable receipts."""
