"""Pages of a store: what it holds and saves, its objects, its upkeep, its keys."""
