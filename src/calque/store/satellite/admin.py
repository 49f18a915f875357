"""What the owner of a satellite does, beside the service and without an API key."""

from __future__ import annotations

import os

from calque.store.metabase.accounts import projects
from calque.store.metabase.accounts.api_keys import store_api_key
from calque.store.metabase.accounts.nodes import NodeRecord, Nodes
from calque.store.metabase.accounts.projects import ProjectRecord
from calque.store.metabase.accounts.quota import Usage
from calque.store.metabase.engine.database import Database
from calque.store.metabase.fsck import Finding, fsck
from calque.store.metainfo.api_key import SECRET_SIZE, ApiKey


class Admin:
    """Projects, keys and nodes of one satellite."""

    def __init__(self, database: Database, nodes: Nodes) -> None:
        self._database = database
        self._nodes = nodes

    def create_project(
        self, name: str, *, limit_bytes: int | None = None, limit_segments: int | None = None
    ) -> ProjectRecord:
        """A new project with its own salt."""
        return projects.create_project(
            self._database, name, limit_bytes=limit_bytes, limit_segments=limit_segments
        )

    def find_project(self, name: str) -> ProjectRecord | None:
        """The project of that name, if there is one."""
        return projects.find_project(self._database, name)

    def set_limits(
        self, project_id: bytes, *, limit_bytes: int | None, limit_segments: int | None
    ) -> None:
        """Change what a project may hold."""
        projects.set_limits(
            self._database, project_id, limit_bytes=limit_bytes, limit_segments=limit_segments
        )

    def usage(self, project_id: bytes) -> Usage:
        """What a project holds now."""
        return projects.project_usage_of(self._database, project_id)

    def create_api_key(self, project_id: bytes, name: str = "") -> ApiKey:
        """A new unrestricted key of a project; shown now and never again."""
        projects.get_project(self._database, project_id)
        secret = os.urandom(SECRET_SIZE)
        key = ApiKey.create(secret)
        store_api_key(self._database, key.head, project_id, secret, name)
        return key

    def register_node(self, node_id: bytes, address: str, placement: int = 0) -> NodeRecord:
        """Add a storage node, or change where it is."""
        return self._nodes.register(node_id, address, placement)

    def nodes(self) -> list[NodeRecord]:
        """Every storage node."""
        self._nodes.refresh()
        return list(self._nodes.all())

    def fsck(self) -> list[Finding]:
        """Everything that is wrong with the metabase."""
        return fsck(self._database)
