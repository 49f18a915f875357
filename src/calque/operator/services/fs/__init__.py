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

The files are those of every service (see ``calque.operator.services``), and those of files alone:
``root`` and ``syscalls`` (paths, the kernel), ``temporary`` (how a file is written aside and takes
its name), ``extents`` (how bytes move), ``resume`` (a copy that goes on), ``rename``,
``directories``, ``aside`` (many files written first and named later), ``attributes`` (times, modes,
owners), ``links`` (symlinks kept as such).
"""

from calque.operator.services.fs.service import FsService

__all__ = ["FsService"]
