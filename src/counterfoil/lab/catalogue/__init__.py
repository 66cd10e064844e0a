"""The contract catalogue put to the test: each contract drives the real product against its provider's behaviour."""
