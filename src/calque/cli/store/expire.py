"""``calque store expire``: remove what is over."""

from __future__ import annotations

from dataclasses import asdict

from calque.cli.flags.upkeep_flags import DryRun, Folder, open_store
from calque.cli.output import JsonFlag, as_json, record


def expire(folder: Folder, dry_run: DryRun = False, json: JsonFlag = False) -> None:
    """Delete expired objects, abandoned uploads and copies, and pieces that waited for a node.

    Safe at any time. `calque serve` does it by itself, once an hour.

    calque store expire ./data
    """
    from calque.store.upkeep.expire import plan_sweep, sweep_store

    with open_store(folder) as store:
        swept = asdict(plan_sweep(store) if dry_run else sweep_store(store))
    if json:
        as_json(swept)
    else:
        record(swept)
