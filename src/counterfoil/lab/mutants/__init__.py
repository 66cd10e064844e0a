"""The mutants: one safety rule of the real code turned off each, and what must notice it."""
