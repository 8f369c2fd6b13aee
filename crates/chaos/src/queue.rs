//! Contention: submitters of the same URLs, workers on one host, and hosts of very
//! different size.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use tidings_store::{ClaimRequest, Completion, Outcome, Submission};

use crate::child::submission;
use crate::environment::{Environment, HOST_DELAY, web};
use crate::ledger::LedgerSummary;
use crate::scenario::Measured;
use crate::setting::Setting;

/// The same URLs from eight concurrent submitters, each in another sequence.
pub(crate) async fn concurrent_submits(setting: Setting) -> anyhow::Result<Measured> {
    let env = Environment::new(setting, web(1, 0)).await?;
    let urls: usize = setting.size(4_000, 20_000);
    let all: Vec<Submission> = (0..urls)
        .map(|n| submission(&format!("https://h{}.example/{n}", n % 100)))
        .collect::<anyhow::Result<_>>()?;
    let mut running = tokio::task::JoinSet::new();
    for submitter in 0..8_usize {
        // A step that shares no factor with the number visits all, in another sequence.
        let step = [7, 11, 13, 17, 19, 23, 29, 31][submitter];
        let shuffled: Vec<_> = (0..urls).map(|n| all[n * step % urls].clone()).collect();
        let store = env.store.clone();
        running.spawn(async move {
            for batch in shuffled.chunks(1000) {
                store.submit(batch).await?;
            }
            Ok::<_, tidings_store::StoreError>(())
        });
    }
    let mut errors = 0;
    while let Some(ended) = running.join_next().await {
        errors += usize::from(ended?.is_err());
    }
    let rows = env.store.count(&tidings_store::Filter::default()).await?;
    Ok(Measured::new(
        errors == 0 && rows == urls as u64,
        format!("{rows} rows of {urls} URLs, {errors} errors"),
    ))
}

/// Two processes with sixteen concurrent fetches each, and one host.
pub(crate) async fn one_host(setting: Setting) -> anyhow::Result<Measured> {
    let env = Environment::new(setting, web(1, setting.size(120, 1000))).await?;
    let processes = [
        env.start("poll,fetch", &["fetch.concurrency=16"])?,
        env.start("poll,fetch,deliver", &["fetch.concurrency=16"])?,
    ];
    env.wait_until_delivered(setting.work_timeout()).await?;
    drop(processes);
    let summary = LedgerSummary::of(&env);
    let mut starts: Vec<_> = env.sim.log().snapshot().iter().map(|r| r.start).collect();
    starts.sort_unstable();
    let closest = starts.windows(2).map(|pair| pair[1] - pair[0]).min();
    Ok(Measured::new(
        true,
        format!(
            "closest requests {:.1} ms apart, host delay {} ms",
            closest.unwrap_or_default().as_secs_f64() * 1000.0,
            HOST_DELAY.as_millis()
        ),
    )
    .with_ledger(&summary))
}

/// One host has nearly all URLs, and they were submitted first.
pub(crate) async fn dominant_host(setting: Setting) -> anyhow::Result<Measured> {
    let env = Environment::new(setting, web(1, 0)).await?;
    let (hosts, huge, each) = setting.size((100, 5_000, 4), (1_000, 100_000, 5));
    let delay = Duration::from_millis(setting.size(1_000, 2_000));
    let mut options = tidings_store::StoreOptions::default();
    options.host_delay = delay;
    let store = tidings_store::Store::open(&env.address, &options).await?;
    let of_huge = (0..huge).map(|n| format!("https://huge.example/{n}"));
    let of_others = (0..hosts * each).map(|n| format!("https://h{}.example/{n}", n % hosts));
    let all = of_huge.chain(of_others).map(|url| submission(&url));
    let all = all.collect::<anyhow::Result<Vec<_>>>()?;
    for batch in all.chunks(1000) {
        store.submit(batch).await?;
    }
    let mut last: BTreeMap<String, Instant> = BTreeMap::new();
    let mut waits = Vec::new();
    let begun = Instant::now();
    while waits.len() < hosts * (each - 1) {
        anyhow::ensure!(
            begun.elapsed() < setting.work_timeout(),
            "the small hosts were never completed"
        );
        let claimed = store.claim(&ClaimRequest::new(1, 50)).await?.claims;
        let now = Instant::now();
        for claim in &claimed {
            let host = claim.url.host().to_owned();
            if host == "huge.example" {
                continue;
            }
            if let Some(before) = last.insert(host, now) {
                waits.push(now - before);
            }
        }
        let fetched = || Outcome::Fetched {
            etag: None,
            last_modified: None,
            content_hash: None,
            document: None,
            again_in: None,
        };
        let ended: Vec<_> = claimed
            .iter()
            .map(|claim| Completion::new(claim.lease_token, fetched()))
            .collect();
        store.complete(&ended).await?;
        if claimed.is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
    waits.sort_unstable();
    let at = |share: usize| waits[(waits.len() * share / 100).min(waits.len() - 1)];
    let (middle, slow) = (at(50), at(99));
    Ok(Measured::new(
        true,
        format!(
            "{hosts} hosts beside one with {huge} URLs, delay {:.1} s: the others waited {:.2} s (p50), {:.2} s (p99)",
            delay.as_secs_f64(),
            middle.as_secs_f64(),
            slow.as_secs_f64()
        ),
    )
    .in_time(slow <= delay * 2))
}
