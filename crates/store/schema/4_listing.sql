-- What people look at first in a frontier of millions, on both engines.

-- list, newest first: grows at one end, so all submits share its pages
CREATE INDEX urls_newest ON urls (discovered_at DESC, host_id, url_id);
-- list of what waits for a retry (3) or is dead (4): nothing else costs anything here
CREATE INDEX urls_trouble ON urls (status, host_id, url_id) WHERE status >= 3;
