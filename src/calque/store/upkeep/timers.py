"""placeholder"""

from calque.store.upkeep import gc  # noqa
