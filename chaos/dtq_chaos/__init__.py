"""Faults, and the stories that are told with them."""
