"""The store as a service of the Operator."""
