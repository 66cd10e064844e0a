"""Numbered schema migrations, applied in order and never edited once released."""
