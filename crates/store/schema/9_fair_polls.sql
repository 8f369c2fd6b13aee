-- claim_feeds: how many feeds of each source are in flight. A lease that ended has 0.
CREATE INDEX feeds_leased ON feeds (source_id) WHERE lease_until > 0;
