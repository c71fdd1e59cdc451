"""The clients. Those of `_sync` are generated from those of `_async`."""
