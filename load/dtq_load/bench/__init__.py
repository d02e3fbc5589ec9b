"""The benchmark: this engine beside its peers, on one broker, in one run. `peer.py` says what a
peer is, `peers/` holds one file for each, and `peer_apps/` beside this package what runs in their
own processes."""
