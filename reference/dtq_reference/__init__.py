"""An engine that keeps the whole contract, small enough to read in an evening."""
