"""Objects of a tree, copied: small and large, with what goes along, durable by the batch."""
