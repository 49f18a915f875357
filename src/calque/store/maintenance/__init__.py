"""What the owner of a store does now and then: ``sweep``, ``orphans``, ``fsck``, ``backup``."""
