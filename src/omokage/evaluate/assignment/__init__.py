"""Optimal assignment: the solver behind re-identification, exact and with a proof."""
