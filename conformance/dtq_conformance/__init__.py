"""The vocabulary, the judge, and one case for each promise of the contract."""
