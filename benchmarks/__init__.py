"""Measurements: each file is a command, compares peers in one run, and prints ratios."""
