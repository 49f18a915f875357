"""Storage nodes: an id, a placement and an Operator root that holds pieces."""
