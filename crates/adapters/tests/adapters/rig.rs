//! One adapter, its config, its cursor, and a service that is faked. The cursor
//! goes through text between pulls, as over a restart.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use serde_json::Value as Json;
use tidings_adapters::{
    AdapterError, AdapterErrorKind, AdapterHttp, AdapterItem, HttpUnavailable, Pull, PullContext,
    ServiceOptions, SourceAdapter, adapter,
};
use tidings_net::{Client, Egress, NetOptions, Redirects, Request, Response};
use tidings_sim::{ApiFault, FakeApi};

pub(crate) const KEY: &str = "s3cret-key-of-the-test";

/// The present of all tests.
pub(crate) const NOW: i64 = 1_794_700_800;

/// Sends requests without delay; records the gaps that were demanded.
#[derive(Debug)]
struct DirectHttp {
    client: Client,
    gaps: Mutex<BTreeSet<Duration>>,
}

#[async_trait]
impl AdapterHttp for DirectHttp {
    async fn fetch(&self, request: Request, gap: Duration) -> Result<Response, HttpUnavailable> {
        self.gaps.lock().unwrap().insert(gap);
        let response = self.client.fetch(request, Redirects::Report).await;
        response.map_err(HttpUnavailable::Failed)
    }
}

pub(crate) struct Rig {
    pub(crate) fake: FakeApi,
    pub(crate) config: Json,
    pub(crate) cursor: Option<String>,
    pub(crate) now: i64,
    pub(crate) max_items: usize,
    pub(crate) wants_text: bool,
    pub(crate) key: &'static str,
    pub(crate) retry_waits: Vec<Duration>,
    pub(crate) time_limit: Duration,
    /// Ids that were delivered, in their order.
    pub(crate) delivered: Vec<String>,
    adapter: &'static dyn SourceAdapter,
    http: DirectHttp,
}

impl Rig {
    pub(crate) fn new(kind: &str, fake: FakeApi, config: Json) -> Self {
        let client = Client::new(NetOptions {
            egress: Egress {
                allow: vec!["127.0.0.0/8".parse().unwrap()],
                ports: vec![fake.port()..=fake.port()],
            },
            ..NetOptions::default()
        });
        let adapter = adapter(kind).unwrap();
        adapter.validate(&config).unwrap();
        Self {
            adapter,
            fake,
            config,
            cursor: None,
            now: NOW,
            max_items: 100_000,
            wants_text: false,
            key: KEY,
            retry_waits: Vec::new(),
            time_limit: Duration::from_secs(10),
            delivered: Vec::new(),
            http: DirectHttp {
                client: client.unwrap(),
                gaps: Mutex::default(),
            },
        }
    }

    pub(crate) async fn try_pull(&mut self) -> Result<Pull, AdapterError> {
        let key = self.key;
        let secrets = move |_: &str| (!key.is_empty()).then(|| key.to_owned());
        let service = ServiceOptions {
            base_url: Some(self.fake.url()),
            ..ServiceOptions::default()
        };
        let context = PullContext {
            http: &self.http,
            secrets: &secrets,
            service: &service,
            now: Timestamp::from_second(self.now).unwrap(),
            max_items: self.max_items,
            wants_text: self.wants_text,
            time_limit: self.time_limit,
            retry_waits: &self.retry_waits,
        };
        assert!(!format!("{context:?}").contains(KEY));
        let pull = self
            .adapter
            .pull(&self.config, self.cursor.as_deref(), &context)
            .await?;
        assert!(!format!("{pull:?}").contains(KEY), "{pull:?}");
        serde_json::from_str::<Json>(&pull.cursor).unwrap();
        Ok(pull)
    }

    /// A pull whose items and cursor are recorded.
    pub(crate) async fn pull(&mut self) -> Vec<AdapterItem> {
        let pull = self.try_pull().await.unwrap();
        self.cursor = Some(pull.cursor);
        let guids = pull.items.iter().map(|item| item.guid.clone());
        self.delivered.extend(guids);
        pull.items
    }

    /// Pulls until nothing is pending.
    pub(crate) async fn pull_all(&mut self) -> usize {
        for pulls in 1..500 {
            let pull = self.try_pull().await.unwrap();
            self.cursor = Some(pull.cursor);
            assert!(pull.items.len() <= self.max_items);
            self.delivered
                .extend(pull.items.into_iter().map(|item| item.guid));
            if !pull.has_more {
                return pulls;
            }
        }
        panic!("it never ends");
    }

    /// Every story of the ledger once, and nothing else.
    pub(crate) fn assert_complete(&self) {
        let distinct: BTreeSet<&String> = self.delivered.iter().collect();
        assert_eq!(distinct.len(), self.delivered.len(), "delivered twice");
        let published = self.fake.stories().len();
        assert_eq!(self.delivered.len(), published, "of what was published");
    }

    pub(crate) async fn error_kind(&mut self) -> AdapterErrorKind {
        let error = self.try_pull().await.unwrap_err();
        assert!(!error.to_string().is_empty());
        let shown = format!("{error} {error:?}");
        assert!(
            !shown.contains(KEY) && !shown.contains(self.key) || self.key.is_empty(),
            "{shown}"
        );
        error.kind
    }

    pub(crate) fn min_gap(&self) -> Duration {
        *self.http.gaps.lock().unwrap().first().unwrap()
    }

    /// What every adapter does with a service that fails: the kind of error is named,
    /// the cursor stays, and afterwards nothing is missing.
    pub(crate) async fn assert_survives_faults(&mut self) {
        let rows = [
            (
                ApiFault::TooManyRequests(Some(77)),
                AdapterErrorKind::RateLimited {
                    after: Some(Duration::from_secs(77)),
                },
            ),
            (
                ApiFault::TooManyRequests(None),
                AdapterErrorKind::RateLimited { after: None },
            ),
            (ApiFault::Status(503), AdapterErrorKind::Network),
            (ApiFault::Silence, AdapterErrorKind::Network),
            (
                ApiFault::Body("Your query was too short.".to_owned()),
                AdapterErrorKind::Malformed,
            ),
            (
                ApiFault::Body("{\"unexpected\":".to_owned()),
                AdapterErrorKind::Malformed,
            ),
            (ApiFault::Body(String::new()), AdapterErrorKind::Malformed),
        ];
        for (fault, kind) in rows {
            let limit = self.time_limit;
            if fault == ApiFault::Silence {
                self.time_limit = Duration::from_millis(500);
            }
            self.fake.fail_next([fault.clone()]);
            assert_eq!(self.error_kind().await, kind, "{fault:?}");
            self.time_limit = limit;
        }
        // Transient errors are retried, where there is time.
        self.retry_waits = vec![Duration::from_millis(5); 3];
        self.fake.fail_next([
            ApiFault::TooManyRequests(None),
            ApiFault::Status(502),
            ApiFault::Status(500),
        ]);
        self.pull_all().await;
        self.assert_complete();
        self.retry_waits.clear();
    }
}
