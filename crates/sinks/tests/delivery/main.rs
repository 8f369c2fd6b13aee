//! Every sink as the deliverer uses it, against servers that fail on command:
//! each fault, any order of faults, and processes that are killed.

#![allow(clippy::unwrap_used)]

mod child;
mod elasticsearch;
mod search;

use std::path::Path;

use jiff::Timestamp;
use tidings_document::{Document, License};
use tidings_net::{Client, Egress, NetOptions};
use tidings_sinks::{BuildError, Context, Sink, SinkConfig, Verdict, build};

/// The time of these tests.
fn now() -> Timestamp {
    "2026-11-15T09:00:00Z".parse().unwrap()
}

fn client() -> Client {
    let egress = Egress {
        allow: vec!["127.0.0.0/8".parse().unwrap()],
        ports: vec![1..=65535],
    };
    let options = NetOptions {
        egress,
        ..NetOptions::default()
    };
    Client::new(options).unwrap()
}

/// With the secrets of these tests in the environment.
fn context(folder: &Path) -> Context {
    let environment = |name: &str| match name {
        "PASSWORD" => Some("pass-phrase".to_owned()),
        "KEY" => Some("a-very-secret-key".to_owned()),
        _ => None,
    };
    Context {
        environment: Box::new(environment),
        ..Context::new(client(), folder)
    }
}

fn try_sink(toml: &str, context: &Context) -> Result<Box<dyn Sink>, BuildError> {
    let config: SinkConfig = toml::from_str(toml).unwrap();
    build("main", &config, context)
}

fn sink(toml: &str) -> Box<dyn Sink> {
    try_sink(toml, &context(Path::new("."))).unwrap()
}

/// The n-th document in some revision; its title tells both.
fn document(n: usize, revision: i64) -> Document {
    Document {
        id: format!("{n:064x}"),
        revision,
        url: format!("http://news.example/{n}"),
        source_id: 1,
        source_name: "News Example".into(),
        origin: "feed".into(),
        title: title(n, revision),
        excerpt: format!("The start of story {n}"),
        body_text: format!("The start of story {n} and, as revision {revision} has it, its end."),
        authors: vec!["A. Writer".into(), "B. Editor".into()],
        published_at: Some("2026-11-14T08:00:00Z".parse().unwrap()),
        fetched_at: now(),
        language: Some("en".into()),
        tags: vec!["local-news".into(), "rivers".into()],
        word_count: 14,
        content_type: "article".into(),
        license: License::Rss,
        ..Document::default()
    }
}

fn title(n: usize, revision: i64) -> String {
    format!("Story {n} revision {revision}")
}

fn documents(numbers: std::ops::Range<usize>) -> Vec<Document> {
    numbers.map(|n| document(n, 1)).collect()
}

async fn deliver(sink: &dyn Sink, batch: &[Document]) -> Vec<Verdict> {
    let verdicts = sink.deliver(batch, now()).await;
    assert_eq!(verdicts.len(), batch.len(), "a verdict for each document");
    verdicts
}

/// Delivers as the deliverer does: what may be retried is, until all is said.
/// Gives the dead, and how many rounds it took.
async fn until_done(sink: &dyn Sink, batch: Vec<Document>) -> (Vec<(Document, String)>, usize) {
    let mut waiting = batch;
    let mut dead = Vec::new();
    for round in 1..100 {
        let mut again = Vec::new();
        for run in waiting.chunks(sink.limits().max_docs) {
            let verdicts = deliver(sink, run).await;
            for (document, verdict) in run.iter().zip(verdicts) {
                match verdict {
                    Verdict::Accepted => {}
                    Verdict::Retry { .. } => again.push(document.clone()),
                    Verdict::Dead { reason } => dead.push((document.clone(), reason)),
                }
            }
        }
        if again.is_empty() {
            return (dead, round);
        }
        waiting = again;
    }
    panic!("no end in sight: {} documents wait", waiting.len());
}

fn is_retry(verdict: &Verdict) -> bool {
    matches!(verdict, Verdict::Retry { .. })
}

fn is_dead(verdict: &Verdict) -> bool {
    matches!(verdict, Verdict::Dead { .. })
}

fn error_of(verdict: &Verdict) -> &str {
    match verdict {
        Verdict::Accepted => "",
        Verdict::Retry { error, .. } => error,
        Verdict::Dead { reason } => reason,
    }
}
