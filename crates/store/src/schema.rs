//! The schema and its migrations, embedded in the program. Each step is applied
//! atomically, under a lock, and can be reverted.

/// The version that this program reads and writes.
pub const SCHEMA_VERSION: i64 = 11;

/// One migration step. `up` scripts are run one after the other.
#[derive(Debug)]
pub(crate) struct Migration {
    pub(crate) version: i64,
    pub(crate) sqlite_up: &'static [&'static str],
    pub(crate) sqlite_down: &'static str,
    pub(crate) postgres_up: &'static [&'static str],
    pub(crate) postgres_down: &'static str,
}

const COMMON: &str = include_str!("../schema/common.sql");

const POLLING: &str = include_str!("../schema/2_polling.sql");
const POLLING_DOWN: &str =
    "DROP TABLE seen_titles; DROP TABLE marks; ALTER TABLE feeds DROP COLUMN demand_nano;";

const DELIVERY: &str = include_str!("../schema/3_delivery.sql");
const DELIVERY_DOWN: &str =
    "DROP INDEX documents_changes; ALTER TABLE documents DROP COLUMN change_id;
    ALTER TABLE sinks DROP COLUMN delivered;";

const LISTING: &str = include_str!("../schema/4_listing.sql");
const LISTING_DOWN: &str = "DROP INDEX urls_newest; DROP INDEX urls_trouble;";

const NEAR_DOWN: &str = "DROP TABLE sketch_keys; DROP TABLE sketches;
    DROP INDEX documents_cluster; ALTER TABLE documents DROP COLUMN cluster;";

const AUDIT: &str = include_str!("../schema/6_audit.sql");
const AUDIT_DOWN: &str = "DROP TABLE audit; ALTER TABLE tokens DROP COLUMN expires_at;";

const SINKS: &str = include_str!("../schema/7_sinks.sql");
const SINKS_DOWN: &str = "ALTER TABLE sinks DROP COLUMN disabled_at;
    ALTER TABLE sinks DROP COLUMN node; ALTER TABLE sinks DROP COLUMN last_seen;";

const RETENTION: &str = include_str!("../schema/8_retention.sql");
const RETENTION_DOWN: &str =
    "DROP INDEX feed_fetch_log_age; DROP INDEX seen_titles_age; DROP INDEX tasks_age;
    DROP INDEX idempotency_age; DROP INDEX audit_age; DROP INDEX runs_age;";

const FAIR_POLLS: &str = include_str!("../schema/9_fair_polls.sql");
const FAIR_POLLS_DOWN: &str = "DROP INDEX feeds_leased;";

const SEEN_GUIDS: &str = include_str!("../schema/10_seen_guids.sql");
const SEEN_GUIDS_DOWN: &str = "DROP TABLE seen_guids;";

pub(crate) static MIGRATIONS: &[Migration] = &[
    Migration {
        version: 1,
        sqlite_up: &[COMMON, include_str!("../schema/sqlite.sql")],
        sqlite_down: include_str!("../schema/sqlite_down.sql"),
        postgres_up: &[COMMON, include_str!("../schema/postgres.sql")],
        postgres_down: include_str!("../schema/postgres_down.sql"),
    },
    Migration {
        version: 2,
        sqlite_up: &[POLLING],
        sqlite_down: POLLING_DOWN,
        postgres_up: &[POLLING],
        postgres_down: POLLING_DOWN,
    },
    Migration {
        version: 3,
        sqlite_up: &[DELIVERY],
        sqlite_down: DELIVERY_DOWN,
        postgres_up: &[DELIVERY],
        postgres_down: DELIVERY_DOWN,
    },
    Migration {
        version: 4,
        sqlite_up: &[LISTING],
        sqlite_down: LISTING_DOWN,
        postgres_up: &[LISTING],
        postgres_down: LISTING_DOWN,
    },
    Migration {
        version: 5,
        sqlite_up: &[include_str!("../schema/5_near_sqlite.sql")],
        sqlite_down: NEAR_DOWN,
        postgres_up: &[include_str!("../schema/5_near_postgres.sql")],
        postgres_down: NEAR_DOWN,
    },
    Migration {
        version: 6,
        sqlite_up: &[AUDIT],
        sqlite_down: AUDIT_DOWN,
        postgres_up: &[AUDIT],
        postgres_down: AUDIT_DOWN,
    },
    Migration {
        version: 7,
        sqlite_up: &[SINKS],
        sqlite_down: SINKS_DOWN,
        postgres_up: &[SINKS],
        postgres_down: SINKS_DOWN,
    },
    Migration {
        version: 8,
        sqlite_up: &[RETENTION],
        sqlite_down: RETENTION_DOWN,
        postgres_up: &[
            RETENTION,
            include_str!("../schema/8_retention_postgres.sql"),
        ],
        postgres_down: include_str!("../schema/8_retention_postgres_down.sql"),
    },
    Migration {
        version: 9,
        sqlite_up: &[FAIR_POLLS],
        sqlite_down: FAIR_POLLS_DOWN,
        postgres_up: &[FAIR_POLLS],
        postgres_down: FAIR_POLLS_DOWN,
    },
    Migration {
        version: 10,
        sqlite_up: &[SEEN_GUIDS],
        sqlite_down: SEEN_GUIDS_DOWN,
        postgres_up: &[SEEN_GUIDS],
        postgres_down: SEEN_GUIDS_DOWN,
    },
    Migration {
        version: 11,
        sqlite_up: &[include_str!("../schema/11_queue_order_sqlite.sql")],
        sqlite_down: include_str!("../schema/11_queue_order_sqlite_down.sql"),
        // Its index has the order.
        postgres_up: &[],
        postgres_down: "",
    },
];

/// The table of the schema version, the same on both engines.
pub(crate) const VERSION_TABLE: &str = "CREATE TABLE IF NOT EXISTS schema_version (version BIGINT PRIMARY KEY, applied_at BIGINT NOT NULL)";
