//! What the fakes of APIs have in common: stories that were published (the
//! ledger), a key, faults that happen to the next requests, and a list of the
//! requests. How a service responds is in the file of its name.

use std::collections::{BTreeSet, VecDeque};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::http::{Call, HttpServer, Reply};

/// One thing that a service has.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Story {
    /// Numbers count up from 1.
    pub id: u64,
    pub title: String,
    /// Empty for a post that is its own page.
    pub url: String,
    pub text: String,
    pub author: String,
    pub subject: String,
    /// When it was published, in seconds.
    pub at: i64,
}

/// What happens to one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ApiFault {
    /// None: the request succeeds.
    None,
    /// 429, with this `Retry-After`.
    TooManyRequests(Option<u32>),
    /// This status, and a page of some proxy.
    Status(u16),
    /// 200, and something other than what was requested.
    Body(String),
    /// No response, ever.
    Silence,
}

/// What a fake knows.
#[derive(Debug, Default)]
pub(crate) struct ApiState {
    pub(crate) stories: Vec<Story>,
    pub(crate) key: Option<String>,
    /// How many results can be seen at all, where a service has such plans.
    pub(crate) cap: Option<usize>,
    /// Requests that are left, where a service says so.
    pub(crate) left: Option<u32>,
    /// The present, for services that have files for each quarter of an hour.
    pub(crate) now: i64,
    /// Files that are missing.
    pub(crate) missing: BTreeSet<String>,
    /// Packed files are served with a `Content-Encoding`.
    pub(crate) encodes_files: bool,
    faults: VecDeque<ApiFault>,
    requested: Vec<String>,
}

/// A running fake of an API; it ends when it is dropped.
#[derive(Debug)]
pub struct FakeApi {
    server: HttpServer,
    state: Arc<Mutex<ApiState>>,
}

impl FakeApi {
    pub(crate) async fn start(
        respond: fn(&mut ApiState, &Call, &Parameters) -> Reply,
    ) -> io::Result<Self> {
        let state: Arc<Mutex<ApiState>> = Arc::default();
        let shared = Arc::clone(&state);
        let server = HttpServer::start(move |call| {
            let mut state = lock(&shared);
            state
                .requested
                .push(format!("{}?{}", call.path, call.query));
            match state.faults.pop_front().unwrap_or(ApiFault::None) {
                ApiFault::None => respond(&mut state, &call, &Parameters::of(&call.query)),
                ApiFault::TooManyRequests(None) => Reply::text(429, "too many requests"),
                ApiFault::TooManyRequests(Some(seconds)) => {
                    Reply::text(429, "too many requests").with("Retry-After", seconds.to_string())
                }
                ApiFault::Status(status) => Reply::text(status, "<html>upstream</html>"),
                ApiFault::Body(body) => Reply::text(200, &body),
                ApiFault::Silence => Reply::Silence,
            }
        });
        let server = server.await?;
        Ok(Self { server, state })
    }

    pub fn url(&self) -> String {
        self.server.url()
    }

    pub fn port(&self) -> u16 {
        let url = self.url();
        let port = url.rsplit(':').next().and_then(|port| port.parse().ok());
        port.unwrap_or_default()
    }

    /// Publishes one story; its id.
    pub fn publish(&self, story: Story) -> u64 {
        let mut state = lock(&self.state);
        let id = state.stories.len() as u64 + 1;
        let fill = |text: String, other: String| if text.is_empty() { other } else { text };
        state.stories.push(Story {
            id,
            title: fill(story.title, format!("Story {id}")),
            author: fill(story.author, "A. Writer".to_owned()),
            ..story
        });
        id
    }

    /// Publishes `count` stories with links, one `every` that many seconds.
    pub fn publish_many(&self, count: u64, from: i64, every: i64) {
        for n in 0..count {
            let id = lock(&self.state).stories.len() + 1;
            self.publish(Story {
                url: format!("https://paper.example/story/{id}"),
                text: format!("The whole text of story {id}."),
                at: from + n as i64 * every,
                ..Story::default()
            });
        }
    }

    /// The ledger.
    pub fn stories(&self) -> Vec<Story> {
        lock(&self.state).stories.clone()
    }

    pub fn remove(&self, id: u64) {
        lock(&self.state).stories.retain(|story| story.id != id);
    }

    /// Only this key is good, from now on.
    pub fn require_key(&self, key: &str) {
        lock(&self.state).key = Some(key.to_owned());
    }

    pub fn set_cap(&self, results: usize) {
        lock(&self.state).cap = Some(results);
    }

    pub fn set_left(&self, requests: u32) {
        lock(&self.state).left = Some(requests);
    }

    pub fn set_now(&self, seconds: i64) {
        lock(&self.state).now = seconds;
    }

    /// The file of this name is not there, or is again.
    pub fn set_missing(&self, name: &str, is_missing: bool) {
        let missing = &mut lock(&self.state).missing;
        match is_missing {
            true => missing.insert(name.to_owned()),
            false => missing.remove(name),
        };
    }

    /// Serves packed files with a `Content-Encoding`, from now on.
    pub fn encode_files(&self) {
        lock(&self.state).encodes_files = true;
    }

    /// What happens to the next requests, one each.
    pub fn fail_next(&self, faults: impl IntoIterator<Item = ApiFault>) {
        lock(&self.state).faults.extend(faults);
    }

    /// Every request so far: path and query.
    pub fn asked(&self) -> Vec<String> {
        lock(&self.state).requested.clone()
    }
}

fn lock(state: &Mutex<ApiState>) -> MutexGuard<'_, ApiState> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The parameters of a request.
#[derive(Debug)]
pub(crate) struct Parameters(Vec<(String, String)>);

impl Parameters {
    fn of(query: &str) -> Self {
        let pairs = query.split('&').filter(|pair| !pair.is_empty());
        Self(
            pairs
                .map(|pair| {
                    let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
                    (decoded(name), decoded(value))
                })
                .collect(),
        )
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    pub(crate) fn number(&self, name: &str, default: usize) -> usize {
        let number = self.get(name).and_then(|text| text.parse().ok());
        number.unwrap_or(default)
    }
}

fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let (high, low) = (rest.next(), rest.next());
                high.zip(low)
                    .and_then(|(high, low)| tidings_text::hex::byte(high, low))
                    .unwrap_or(b'?')
            }
            byte => byte,
        });
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Seconds as the time of day that APIs write.
pub(crate) fn time(seconds: i64) -> String {
    let time = jiff::Timestamp::from_second(seconds).unwrap_or_default();
    time.to_string()
}
