"""Drivers own queue, order, commit and abort of a copy; services only supply verbs.

::

    one_shot.py    OneShotDriver(verbs, total)                      one request
    multipart.py   MultipartDriver(verbs, plan, concurrent=)        S3: upload, parts, complete
                   MultipartDriver.resume(verbs, state, concurrent=, size=)
    blocks.py      BlocksDriver(verbs, plan, concurrent=)           Azure: blocks, one commit
                   BlocksDriver.resume_blocks(verbs, state, concurrent=, size=)
    rewrite.py     RewriteDriver(verbs, total)                      GCS: token after token
                   RewriteDriver.resume(verbs, state, size=)
    stream.py      StreamDriver(origin, source, into, target, options)   through the client
    streamed_parts.py  StreamedPartsDriver: the same in parts that can be resumed
    finished.py    a checkpoint of a complete copy (resumed by the operator, not by services)
    part_queue.py  the parts in flight;  parts_state.py  parts and plans in a checkpoint
    verbs.py       what a service supplies

A driver is made without sending anything (a resume may ask the server what it holds). Steps sum
up to ``total`` on every path; a resumed driver reports what was copied before in its first step.
"""
