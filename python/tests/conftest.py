"""Shared by all tests: hypothesis without deadlines or state between runs."""

from hypothesis import settings

# Shared machines stall; a stall is not a failure. Derandomized: equal code, equal examples.
settings.register_profile(
    "csdplan", max_examples=300, deadline=None, derandomize=True, database=None
)
settings.load_profile("csdplan")
