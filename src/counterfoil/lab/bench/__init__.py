"""Benchmarks: ratios to floors measured in turn, block by block, in one run."""
