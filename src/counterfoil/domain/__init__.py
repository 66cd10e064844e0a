"""What is true: intents, evidence, outcomes. Pure: no clock, no randomness, no I/O."""
