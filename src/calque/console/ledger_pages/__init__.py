"""Pages of the ledger: tables and their loads, runs over trees. Nothing else is needed for them."""
