"""Servers that nobody here wrote, behind a relay that loses their answers."""
