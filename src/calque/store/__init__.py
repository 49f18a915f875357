"""The object store whose copies are one metadata transaction."""

from calque.store.required_packages import require_store_extra

# Here, because whatever of the store is imported first passes through here.
require_store_extra()
