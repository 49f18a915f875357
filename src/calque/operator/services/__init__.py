"""One package a service, the same file names in each; the registry names them.

::

    builder.py      SECRETS, build(uri, options, chain) -> Service: what the registry calls
    config.py       the frozen configuration: every option documented, secrets masked in its repr
    service.py      what the service can do, and which of the files below does it
    stat.py         an object looked at
    list.py         objects in key order, page by page
    read.py         the bytes of a range
    write.py        an object written whole
    delete.py       an object removed
    copy.py         the verbs of a copy for the drivers, and the choice of driver by size
    leftovers.py    what killed copies left, found and removed
    errors.py       the one table from the service's errors to ours

    client.py       where requests are sent: the root, the layers, one signed exchange
    credentials.py  where somebody must say who asks
    presign.py      where requests can be signed for others to send
    parted_write.py where parts of a write are kept, so that another process can go on with it
    marker.py       where work of ours must be told from that of others

What only one service needs has a name of its own, told in the docstring of its package; a test
holds this list against the files. No service imports another. What several share is beside them:

::

    client_service.py  the part of service.py that is the same wherever there is a client
    conditional.py     conditional requests that meet their own work, and their refusals
    carry.py           what a copy carries over besides the bytes
    listing.py         pages of a listing, and servers that never turn them
    pieces.py          the bytes of a write, cut into what one request carries
    statuses.py        what an HTTP status means where no reason is given
    option_values.py   options read from keywords and from queries

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
