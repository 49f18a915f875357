"""The pages of a store together."""

from __future__ import annotations

from calque.console.page import Change, View
from calque.console.site import Section
from calque.console.store_pages.figures import StoreFigures
from calque.console.store_pages.folder import FolderPages
from calque.console.store_pages.keys import KeyPages
from calque.console.store_pages.object import ObjectPage, S3Door
from calque.console.store_pages.objects import ObjectPages
from calque.console.store_pages.upkeep import UpkeepPages
from calque.store.embedded import EmbeddedStore
from calque.store.project import Project
from calque.store.uplink.grant import AccessGrant
from calque.store.uplink.session import Session


def store_section(
    store: EmbeddedStore, grant: AccessGrant | None, door: S3Door | None = None
) -> Section:
    """What can be seen of a store, and done with it.

    Without a ``grant`` of the whole store (one with a passphrase that was not given) its objects
    and keys stay closed, and are not linked. ``door`` is where the store answers S3.
    """
    figures, upkeep = StoreFigures(store), UpkeepPages(store)
    links = [("Upkeep", "upkeep")]
    views: dict[str, View] = {"upkeep": upkeep.show_upkeep}
    changes: dict[str, Change] = {"upkeep/run": upkeep.run_now}
    if grant is not None:
        project = _open_project(store, grant)
        objects, one = ObjectPages(project, str(store.folder)), ObjectPage(store, project, door)
        folders, keys = FolderPages(project, str(store.folder)), KeyPages(store, grant)
        links = [("Objects", "objects"), *links, ("Keys", "keys")]
        views |= {
            "keys": keys.show_keys,
            "objects": objects.show_objects,
            "folder": folders.show_folder,
            "object": one.show_object,
            "download": one.download,
            "delete": objects.ask_delete,
        }
        changes |= {
            "keys/make": keys.make,
            "keys/revoke": keys.revoke,
            "bucket/create": objects.create_bucket,
            "upload": objects.upload,
            "delete": objects.delete,
            "folder/copy": folders.copy,
            "folder/rename": folders.rename,
            "object/copy": one.copy,
            "object/rename": one.rename,
            "object/link": one.link,
        }
    return Section(
        name="store",
        links=links,
        views=views,
        changes=changes,
        overview=figures.overview,
        figures=lambda: {**figures.figures(), **upkeep.figures()},
        close=upkeep.close,
    )


def _open_project(store: EmbeddedStore, grant: AccessGrant) -> Project:
    """It is not closed: satellite and nodes are those of the store, which others use."""
    session = Session(store.endpoint, bytes(grant.api_key), grant.encryption, nodes=store.nodes)
    return Project(session, grant)
