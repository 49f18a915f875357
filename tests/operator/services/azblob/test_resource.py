"""Headers and XML of the REST API, to metadata and back."""

from hypothesis import given
from hypothesis import strategies as st

from calque.operator.services.azblob.resource import user_name, wire_name


@given(st.text(st.characters(max_codepoint=0xFFFF, exclude_categories=("Cs",)), min_size=1))
def test_metadata_names_survive_the_wire(name: str) -> None:
    """Azure takes identifiers only; every other name is escaped and comes back."""
    assert wire_name(name).isascii()
    assert wire_name(name).isidentifier()
    assert user_name(wire_name(name)) == name
