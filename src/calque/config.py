"""Settings: calque.toml, then the environment, then flags, merged in one place."""
