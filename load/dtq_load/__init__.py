"""Load from Locust's users; the same checkers judge what came out of it."""
