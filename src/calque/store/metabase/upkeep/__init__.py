"""What upkeep remembers in the metabase: leases, last runs, history, the queue of repairs."""
