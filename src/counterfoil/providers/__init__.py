"""The ways out: each provider sends once, looks as often as it is allowed, and judges nothing."""
