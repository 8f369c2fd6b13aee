DROP VIEW url_frontier, host_state, feed_state, all_counts, host_count;
DROP TABLE hosts, urls, queue, events, counts, count_changes,
    aliases, robots, sources, seeds, feeds, feed_fetch_log, documents, sinks,
    deliveries, dead_letters, tasks, runs, tokens, idempotency;
DROP FUNCTION tidings_now();
