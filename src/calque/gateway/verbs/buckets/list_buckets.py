"""ListBuckets."""

from __future__ import annotations

from calque.gateway.request import Response
from calque.gateway.verbs.call import Call, answer
from calque.gateway.verbs.owner import owner_of

MOST = 10_000


def list_buckets(call: Call) -> Response:
    """The buckets that the key may see, by name, a page at a time where one is asked for."""
    most = call.number("max-buckets", MOST, 1, MOST)
    after = call.query.get("continuation-token", "")
    prefix = call.query.get("prefix", "")
    found = [
        each
        for each in call.project.list_buckets()
        if each.name > after and each.name.startswith(prefix)
    ]
    page = found[:most]
    return answer(
        "ListAllMyBucketsResult",
        {
            "Owner": owner_of(call),
            "Buckets": {
                "Bucket": [
                    {"Name": each.name, "CreationDate": each.created, "BucketRegion": call.region}
                    for each in page
                ]
            },
            "ContinuationToken": page[-1].name if len(found) > most else None,
            "Prefix": prefix or None,
        },
    )
