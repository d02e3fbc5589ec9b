"""What runs in the peers' own processes, one module each; nothing of the harness imports these.
`dtq_load/bench/peer.py` says what such an app does."""
