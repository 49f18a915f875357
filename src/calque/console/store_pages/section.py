"""The pages of a store together."""

from __future__ import annotations

from calque.console.site import Section
from calque.console.store_pages.figures import StoreFigures
from calque.store.embedded import EmbeddedStore


def store_section(store: EmbeddedStore) -> Section:
    """What can be seen of a store, and done with it."""
    figures = StoreFigures(store)
    return Section(
        name="store",
        links=[],
        views={},
        overview=figures.overview,
        figures=figures.figures,
    )
