"""Who may do what, and how much: projects, quotas, API keys, buckets, nodes."""
