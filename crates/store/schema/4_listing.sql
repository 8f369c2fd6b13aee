-- Indexes for the most used lists of a frontier of millions, on both engines.

-- list, newest first: grows at one end, so all submits share its pages
CREATE INDEX urls_newest ON urls (discovered_at DESC, host_id, url_id);
-- list of URLs that await a retry (3) or are dead (4): other rows cost nothing here
CREATE INDEX urls_trouble ON urls (status, host_id, url_id) WHERE status >= 3;
