# Generated from _async/__init__.py; run make gen after changing that.
"""The clients. Those of `_sync` are generated from those of `_async`."""
