"""The laboratory: real processes that keep the truth apart, faults on the wire, and the figures that follow."""
