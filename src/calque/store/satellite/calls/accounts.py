"""The calls on the project behind an API key, and on the key itself."""

from __future__ import annotations

from calque.store.metabase.accounts import projects
from calque.store.metabase.accounts.api_keys import revoke_tail
from calque.store.metabase.model import checks as verify
from calque.store.metainfo.pb import metainfo_pb2 as pb
from calque.store.satellite.caller import Caller
from calque.store.satellite.calls import messages
from calque.store.satellite.satellite import Satellite


def get_project(
    satellite: Satellite, caller: Caller, _request: pb.ProjectGetRequest
) -> pb.ProjectGetResponse:
    """GetProject."""
    record = projects.get_project(satellite.database, caller.project_id)
    return pb.ProjectGetResponse(
        project_id=record.project_id,
        salt=record.salt,
        redundancy=messages.redundancy(satellite.settings.redundancy),
        max_segment_size=satellite.settings.max_segment_size,
        max_inline_size=satellite.settings.max_inline_size,
        max_metadata_size=verify.MAX_METADATA,
        max_keys_per_request=verify.MAX_KEYS_PER_CALL,
    )


def revoke_api_key(
    satellite: Satellite, _caller: Caller, request: pb.ApiKeyRevokeRequest
) -> pb.ApiKeyRevokeResponse:
    """RevokeApiKey: a key may revoke itself and what was attenuated from it."""
    revoke_tail(
        satellite.database, satellite.gatekeeper.tail(request.header.api_key, request.api_key)
    )
    satellite.gatekeeper.forget()
    return pb.ApiKeyRevokeResponse()
