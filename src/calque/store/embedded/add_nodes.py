"""Give a store more nodes, or a new disk in the place of one that is gone.

Roots get their identities first, and are nodes once the description names them. Of a process that
is killed in between stays a file in a root, which the next try names.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

from calque import faults
from calque.errors import AlreadyExists, InvalidInput
from calque.operator import Operator
from calque.store.embedded.description import (
    Description,
    NodeDescription,
    describe_root,
    lock_folder,
    read_json,
    write_json,
)
from calque.store.embedded.store import STORE_FILE, EmbeddedStore
from calque.store.metabase.accounts.nodes import NodeRecord, Nodes
from calque.store.nodes.identity import IDENTITY
from calque.store.nodes.node import NODE_ID_SIZE, Node


def add_nodes(folder: str | os.PathLike[str], roots: Sequence[str]) -> list[NodeRecord]:
    """All nodes of the store afterwards; uploads, repair and exit use the new ones from then on.

    All of ``roots`` or none. One may be that of a node that is gone, where another disk lies now.
    AlreadyExists for the root of any other node, of this store or of another.
    """
    place = Path(folder).absolute()
    with closing(EmbeddedStore.open(place)) as store, lock_folder(place):
        gone = {each.node_id for each in Nodes(store.endpoint.database).at(0, {"gone"})}
        described = read_json(place / STORE_FILE, Description.from_json)
        new = _describe_new(described, [describe_root(each, place) for each in roots], gone)
        replaced = {each.address for each in new}
        kept = tuple(each for each in described.nodes if each.address not in replaced)
        with _identified(place, described, new):
            faults.point("add_nodes.identified")
            write_json(place / STORE_FILE, replace(described, nodes=(*kept, *new)).to_json())
    with closing(EmbeddedStore.open(place)) as store:
        return list(store.endpoint.admin.nodes())


def _describe_new(
    described: Description, addresses: Sequence[str], gone: set[bytes]
) -> list[NodeDescription]:
    if len(set(addresses)) < len(addresses):
        raise InvalidInput("a root is named twice")
    for each in described.nodes:
        if each.address in addresses and each.id not in gone:
            raise AlreadyExists(
                f"{each.address} is the root of node {each.id.hex()[:12]} already",
                hint="Has it a new disk? Give the old one up first: calque store repair --gone.",
            )
    return [NodeDescription(secrets.token_bytes(NODE_ID_SIZE), each) for each in addresses]


@contextmanager
def _identified(
    place: Path, described: Description, new: Sequence[NodeDescription]
) -> Iterator[None]:
    """Every root has its identity; where one cannot have it, or what is done then fails, none."""
    known = {each.id for each in described.nodes}
    made: list[Node] = []
    nodes = [Node(each.id, Operator.from_uri(each.address_in(place))) for each in new]
    try:
        for node in nodes:
            if node.ask(node.identity.read) in known:
                raise AlreadyExists(
                    f"{node.root.location()} still has the disk of a node of this store",
                    hint="One that was given up comes back by itself: calque store repair.",
                )
            node.ask(node.identity.write)
            made.append(node)
        yield
    except BaseException:
        for node in made:
            node.root.delete(IDENTITY)
        raise
    finally:
        for node in nodes:
            node.root.close()
