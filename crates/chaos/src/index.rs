//! A search index that is overloaded, lies, is unavailable or read-only.

use std::time::{Duration, Instant};

use tidings_sim::ElasticsearchFault;

use crate::environment::{Environment, INDEX, wait_until, web};
use crate::ledger::LedgerSummary;
use crate::scenario::Measured;
use crate::setting::Setting;

const ALL: &str = "poll,fetch,deliver";

/// Every kind of rejection and lost response, in the middle of the stream.
pub(crate) async fn partial_failures(setting: Setting) -> anyhow::Result<Measured> {
    use ElasticsearchFault::{
        Garbage, OneItemShort, ReplyLost, RequestLost, SomeItemsOverrun, SomeItemsUnavailable,
        TooManyRequests, Unavailable,
    };
    let env = Environment::new(setting, web(10, setting.size(20, 100))).await?;
    let faults = [
        TooManyRequests(Some(1)),
        SomeItemsOverrun(3),
        ReplyLost,
        Garbage,
        SomeItemsUnavailable(2),
        RequestLost,
        OneItemShort,
        Unavailable,
    ];
    let number = faults.len();
    env.index.fail_next(faults);
    let process = env.start(ALL, &[])?;
    env.wait_until_delivered(setting.work_timeout()).await?;
    drop(process);
    let summary = LedgerSummary::of(&env);
    Ok(Measured::new(true, format!("{number} faults injected")).with_ledger(&summary))
}

pub(crate) async fn unavailable(setting: Setting) -> anyhow::Result<Measured> {
    let env = Environment::new(setting, web(10, setting.size(15, 60))).await?;
    env.index.set_down(true);
    let down = Instant::now();
    let process = env.start(ALL, &[])?;
    env.wait_until_fetched(setting.work_timeout()).await?;
    let fetched = down.elapsed();
    let outage = setting.size(Duration::from_secs(4), Duration::from_secs(180));
    tokio::time::sleep(outage.saturating_sub(fetched)).await;
    let before = env.index.documents(INDEX).len();
    env.index.set_down(false);
    caught_up(
        &env,
        setting,
        before,
        &format!("unavailable for {} s", down.elapsed().as_secs()),
        process,
    )
    .await
}

pub(crate) async fn read_only(setting: Setting) -> anyhow::Result<Measured> {
    let env = Environment::new(setting, web(10, setting.size(15, 60))).await?;
    env.index.set_read_only(true);
    let process = env.start(ALL, &[])?;
    env.wait_until_fetched(setting.work_timeout()).await?;
    tokio::time::sleep(setting.size(Duration::from_secs(3), Duration::from_secs(60))).await;
    let before = env.index.documents(INDEX).len();
    env.index.set_read_only(false);
    caught_up(
        &env,
        setting,
        before,
        "read-only until all was fetched",
        process,
    )
    .await
}

/// No delivery failed permanently, and everything arrives.
async fn caught_up(
    env: &Environment,
    setting: Setting,
    before: usize,
    outage: &str,
    process: crate::environment::Process,
) -> anyhow::Result<Measured> {
    let failed = env
        .store
        .outbox()
        .await?
        .iter()
        .map(|sink| sink.dead)
        .sum::<i64>();
    let first = wait_until(setting.work_timeout(), "the first document", async || {
        Ok(env.index.documents(INDEX).len() > before)
    })
    .await?;
    env.wait_until_delivered(setting.work_timeout()).await?;
    drop(process);
    let summary = LedgerSummary::of(env);
    Ok(Measured::new(
        failed == 0 && before == 0,
        format!(
            "{outage}; {before} indexed meanwhile, {failed} failed permanently; first document {:.1} s later",
            first.as_secs_f64()
        ),
    )
    .with_ledger(&summary))
}
