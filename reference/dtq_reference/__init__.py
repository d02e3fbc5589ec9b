"""A small, fast task queue on Redis Streams that keeps every promise of CONTRACT.md."""
