"""One module a service: ``open_case()`` gives the service to the behaviour suite.

A module holds ``def open_case() -> ContextManager[Case]``, entered once a session (it starts the
server, if there is one). The suite finds the modules by itself.
"""
