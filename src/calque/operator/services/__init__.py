"""One package a service, the same file names in each; the registry names them.

::

    builder.py   SECRETS, build(uri, options, chain) -> Service: what the registry calls
    config.py    the frozen configuration: every option documented, secrets masked in its repr
    service.py   the verbs of calque.operator.service.Service
    copy.py      the verbs for the drivers, and the choice of driver by size
    errors.py    the one table from the service's errors to ours

**builder.py** is the whole contract with the registry:

``SECRETS: frozenset[str]``
    Names of the options that are secrets. They are never pickled, shown, or read from a URI.
``build(uri: ServiceUri, options: Mapping[str, object], chain: Chain) -> Service``
    ``options`` are those of the URI's query (strings) overlaid with the keywords of
    ``Operator.from_uri`` (any type). An unknown option is an ``InvalidInput`` that lists the known
    ones (``calque.operator.uri.refuse_unknown``). Credentials that are not given are found where
    the service is opened (environment, profile, instance). Nothing is sent while building.
``split(uri: str) -> tuple[str, str]`` (only where the container is not the URI's host)
    A URI of one object, cut into the URI of an operator and a path.
``portable(uri: str) -> bool`` (only where it can be False)
    Whether the service can be opened again in another process, so that operators pickle.

A service keeps the chain it was built with in ``chain``, sends every single request through
``chain.run(Call(verb, path, ...), request)``, and gives a copy of itself over the same connections
from ``with_chain(chain)``. ``location(path)`` is ``scheme://container/root/path`` unencoded.
Paths reach a service checked by ``calque.operator.paths``: never empty for an object, no ``..``.
"""
