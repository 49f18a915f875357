"""The object store whose copies are one metadata transaction.

An upload goes ``project`` → ``uplink`` (encrypts, cuts into segments) → ``nodes`` (pieces) and,
by the protocol of ``metainfo``, to the ``satellite``, which writes rows to the ``metabase``. In a
folder all of it runs in one process (``embedded``); over a network ``serve`` offers the satellite
and the ``relay`` to the nodes on one port. ``open_project`` is the door to both, ``upkeep``
how the store is looked after, ``service`` the store as the Operator sees it.
"""

from calque.store.required_packages import require_store_extra

# Here, because whatever of the store is imported first passes through here.
require_store_extra()
