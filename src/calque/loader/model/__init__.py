"""The values that travel between the steps of a load; nothing here imports another step."""
