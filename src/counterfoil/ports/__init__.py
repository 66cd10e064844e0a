"""What the plans need from outside, as Protocols."""
