"""The calls of the service, one module a noun, and the endpoint that dispatches them."""
