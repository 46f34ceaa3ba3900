"""The settings of the embedded PostgreSQL, each with its reason."""

from __future__ import annotations

MIB = 1 << 20


def settings(memory_octets: int) -> str:
    """The text of postgresql.conf for a machine with that much memory."""
    shared = max(32, min(512, memory_octets // 8 // MIB))
    return f"""\
# Written at every start. Use ALTER SYSTEM to change a setting for good.

# What a confirmed message rests on; the node is not ready without the first two.
fsync = on
full_page_writes = on
synchronous_commit = on
# What is confirmed without waiting for the disk (`reliability:reliable`) is there within three times this: half a second.
wal_writer_delay = 150ms

# The latest segments and all progress fit; an eighth of a small machine's memory.
shared_buffers = {shared}MB
effective_cache_size = {shared * 4}MB
work_mem = 8MB
maintenance_work_mem = 64MB
huge_pages = try

# Node: 4 sessions and one per large body; tasks, beat and web: about 10 each; the rest for standbys and the operator's tools.
max_connections = 100

# Full-page images after a checkpoint are the larger part of the log; checkpoint seldom and let 4 GB of log gather.
max_wal_size = 4GB
min_wal_size = 1GB
wal_buffers = 16MB
checkpoint_timeout = 15min
checkpoint_completion_target = 0.9
# Costs processor time per commit, and the disk is not what limits.
wal_compression = off

# Every statement is short; compiling one or spreading it over two processors costs more than running it.
jit = off
max_parallel_workers_per_gather = 0

# Segments are only appended to and dropped; what is updated is small (checkpoints, catalogue) and wants frequent vacuuming.
autovacuum = on
autovacuum_naptime = 15s
autovacuum_max_workers = 2
autovacuum_vacuum_insert_threshold = 1000000

timezone = 'UTC'
log_timezone = 'UTC'
log_destination = 'stderr'
logging_collector = off
log_line_prefix = '%m [%p] '
log_lock_waits = on
"""
