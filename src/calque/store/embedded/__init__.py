"""A store in a folder: its satellite and its nodes in this process.

``store`` opens and makes one; ``description`` is about the two files in its folder;
``identify_nodes`` marks the roots of its nodes.
"""

from calque.store.embedded.store import EmbeddedStore, StoreOptions

__all__ = ["EmbeddedStore", "StoreOptions"]
