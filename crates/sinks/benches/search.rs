//! Indexing rate and query latency of the embedded search, on synthetic news of a
//! natural length and vocabulary. Prints figures, asserts nothing.
//! `cargo bench -p tidings-sinks [-- DOCUMENTS]`

#![allow(clippy::unwrap_used)]

use std::time::{Duration, Instant};

use cpu_time::{ProcessTime, ThreadTime};
use jiff::Timestamp;
use tidings_document::Document;
use tidings_net::{Client, NetOptions};
use tidings_sinks::{Context, SearchIndex, SearchQuery, SinkConfig, Verdict, build, rebuild};

/// Words that can occur; the frequent ones are very frequent (Zipf).
const VOCABULARY: f64 = 80_000.0;
const WORDS_PER_TEXT: usize = 320;

/// A deterministic random number generator.
struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let mixed = (self.0 ^ (self.0 >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
        mixed ^ (mixed >> 33)
    }

    fn word(&mut self) -> String {
        let fraction = (self.next() % 1_000_000) as f64 / 1_000_000.0;
        name(VOCABULARY.powf(fraction) as u64)
    }
}

fn name(mut number: u64) -> String {
    const SYLLABLES: [&str; 16] = [
        "ba", "re", "ti", "no", "su", "la", "me", "ki", "dor", "ven", "pal", "gri", "sto", "cha",
        "fen", "um",
    ];
    let mut word = String::new();
    loop {
        word.push_str(SYLLABLES[(number % 16) as usize]);
        number /= 16;
        if number == 0 {
            return word;
        }
    }
}

fn text(rng: &mut Rng, words: usize) -> String {
    let mut text = String::with_capacity(words * 7);
    for n in 0..words {
        text.push_str(&rng.word());
        text.push_str(if n % 12 == 11 { ". " } else { " " });
    }
    text
}

fn document(n: usize) -> Document {
    let mut rng = Rng(n as u64 + 1);
    Document {
        id: format!("{n:064x}"),
        revision: 1,
        url: format!("https://site-{}.example/story/{n}", n % 500),
        source_name: format!("Site {}", n % 500),
        title: text(&mut rng, 9),
        body_text: text(&mut rng, WORDS_PER_TEXT),
        published_at: Timestamp::from_second(1_760_000_000 + n as i64 * 20).ok(),
        fetched_at: Timestamp::from_second(1_760_000_060 + n as i64 * 20).unwrap(),
        language: Some("en".into()),
        tags: vec![format!("topic-{}", n % 40)],
        ..Document::default()
    }
}

fn main() {
    let count = std::env::args().filter_map(|word| word.parse().ok()).next();
    let documents: usize = count.unwrap_or(100_000);
    let folder = tempfile::tempdir().unwrap();
    let client = Client::new(NetOptions::default()).unwrap();
    let context = Context::new(client, folder.path());
    let config = SinkConfig::Search(Default::default());
    let sink = build("search", &config, &context).unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let batch_size = sink.limits().max_docs;

    let mut indexing = Duration::ZERO;
    let all = ProcessTime::now();
    let mut generating = Duration::ZERO;
    let mut slowest = Duration::ZERO;
    for start in (0..documents).step_by(batch_size) {
        let end = documents.min(start + batch_size);
        let begin = ThreadTime::now();
        let batch: Vec<_> = (start..end).map(document).collect();
        generating += begin.elapsed();
        let begin = Instant::now();
        let verdicts = runtime.block_on(sink.deliver(&batch, Timestamp::UNIX_EPOCH));
        let took = begin.elapsed();
        assert!(verdicts.iter().all(|verdict| *verdict == Verdict::Accepted));
        indexing += took;
        slowest = slowest.max(took);
    }
    let rate = |time: Duration| documents as f64 / time.as_secs_f64();
    println!(
        "delivered {documents} documents of {WORDS_PER_TEXT} words in {indexing:.1?}: {:.0} per second, each batch of {batch_size} committed (slowest {slowest:.0?})",
        rate(indexing)
    );
    // CPU time on one core, without generating the documents.
    let cpu = all.elapsed().saturating_sub(generating);
    println!(
        "that took {cpu:.1?} of CPU: {:.0} per second of one core",
        rate(cpu)
    );

    // Newer revisions of the first ones.
    let batch: Vec<_> = (0..1000.min(documents))
        .map(|n| Document {
            revision: 2,
            ..document(n)
        })
        .collect();
    let begin = Instant::now();
    runtime.block_on(sink.deliver(&batch, Timestamp::UNIX_EPOCH));
    println!(
        "replaced {} documents in {:.0?}",
        batch.len(),
        begin.elapsed()
    );
    drop(sink);

    let path = folder.path().join("search");
    let index = SearchIndex::open(&path).unwrap();
    report(&index, "as delivered");

    let made: Vec<_> = (0..documents).map(document).collect();
    let begin = Instant::now();
    rebuild(&path, made, true, |_| {}).unwrap();
    println!(
        "rebuilt in {:.1?}: {:.0} per second",
        begin.elapsed(),
        rate(begin.elapsed())
    );
    report(&index, "rebuilt");
}

/// A thousand queries of one to three words, some filtered.
fn report(index: &SearchIndex, state: &str) {
    let mut rng = Rng(4711);
    let mut times = Vec::new();
    let mut found = 0;
    for n in 0..1000 {
        let words: Vec<_> = (0..1 + n % 3).map(|_| rng.word()).collect();
        let mut query = SearchQuery::new(words.join(" "));
        if n % 4 == 1 {
            query.source = Some(format!("Site {}", n % 500));
        }
        if n % 4 == 2 {
            query.since = Timestamp::from_second(1_761_000_000).ok();
        }
        let begin = Instant::now();
        found += index.search(&query).unwrap().hits.len();
        times.push(begin.elapsed());
    }
    times.sort();
    println!(
        "{state}: queries with 20 hits and snippets: median {:.2?}, p99 {:.2?}, slowest {:.2?} ({found} hits)",
        times[times.len() / 2],
        times[times.len() * 99 / 100],
        times[times.len() - 1]
    );
}
