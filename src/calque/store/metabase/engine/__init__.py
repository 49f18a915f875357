"""How SQL is executed: connections, transactions, statements, locks, group commit, migrations."""
