"""Local files as objects.

What holds here:

- a reader sees the old file or the new one, never half of one: every write goes to a temporary
  file in the target's own directory and takes its name by one rename;
- what returned is durable: file, directory and newly made parents are fsynced;
- no path and no symlink leads out of the root, also when somebody swaps a directory for a symlink
  meanwhile: the kernel resolves paths beneath the root (``openat2``), we never check then open;
- bytes are pinned by inode, size, mtime and ctime, since files have no etag;
- a file is an object and a directory is only part of a key. Sockets, pipes and devices are not
  shown; content headers, user metadata and tags have no place here and are not kept.

Map: ``service`` (the face), ``root`` and ``syscalls`` (paths, the kernel), ``temporary`` (temporary
files, their marker, how they are published), ``extents`` (how bytes move), one file a verb, and
``errors`` (errno to calque's errors).
"""

from calque.operator.services.fs.service import FsService

__all__ = ["FsService"]
