//! An index that is overrun, lies, goes away or may not be written to.

use std::time::{Duration, Instant};

use tidings_sim::ElasticsearchFault;

use super::books::Books;
use super::ground::{Ground, INDEX, until, web};
use super::{Measured, Setting};

const ALL: &str = "poll,fetch,deliver";

/// Every kind of refusal, some of them twice, in the middle of the stream.
pub(super) async fn troubled(setting: Setting) -> anyhow::Result<Measured> {
    use ElasticsearchFault::{
        Garbage, OneItemShort, ReplyLost, RequestLost, SomeItemsOverrun, SomeItemsUnavailable,
        TooManyRequests, Unavailable,
    };
    let ground = Ground::new(setting, web(10, setting.size(20, 100))).await?;
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
    ground.index.fail_next(faults);
    let process = ground.start(ALL, &[])?;
    ground.finish(setting.late()).await?;
    drop(process);
    let books = Books::of(&ground);
    Ok(Measured::new(
        books.are_right(),
        format!("{number} faults; {books}"),
    ))
}

pub(super) async fn away(setting: Setting) -> anyhow::Result<Measured> {
    let ground = Ground::new(setting, web(10, setting.size(15, 60))).await?;
    ground.index.set_down(true);
    let gone = Instant::now();
    let process = ground.start(ALL, &[])?;
    ground.fetched(setting.late()).await?;
    let fetched = gone.elapsed();
    let away = setting.size(Duration::from_secs(4), Duration::from_secs(180));
    tokio::time::sleep(away.saturating_sub(fetched)).await;
    let before = ground.index.documents(INDEX).len();
    ground.index.set_down(false);
    caught_up(
        &ground,
        setting,
        before,
        &format!("away for {} s", gone.elapsed().as_secs()),
        process,
    )
    .await
}

pub(super) async fn read_only(setting: Setting) -> anyhow::Result<Measured> {
    let ground = Ground::new(setting, web(10, setting.size(15, 60))).await?;
    ground.index.set_read_only(true);
    let process = ground.start(ALL, &[])?;
    ground.fetched(setting.late()).await?;
    tokio::time::sleep(setting.size(Duration::from_secs(3), Duration::from_secs(60))).await;
    let before = ground.index.documents(INDEX).len();
    ground.index.set_read_only(false);
    caught_up(&ground, setting, before, "all fetched meanwhile", process).await
}

/// Nothing was given up, and everything arrives.
async fn caught_up(
    ground: &Ground,
    setting: Setting,
    before: usize,
    how: &str,
    process: super::ground::Process,
) -> anyhow::Result<Measured> {
    let dead = ground
        .store
        .outbox()
        .await?
        .iter()
        .map(|sink| sink.dead)
        .sum::<i64>();
    let first = until(setting.late(), "the first document", async || {
        Ok(ground.index.documents(INDEX).len() > before)
    })
    .await?;
    ground.finish(setting.late()).await?;
    drop(process);
    let books = Books::of(ground);
    Ok(Measured::new(
        books.are_right() && dead == 0 && before == 0,
        format!(
            "{how}; {before} in the index then, {dead} given up; first document {:.1} s after; {books}",
            first.as_secs_f64()
        ),
    ))
}
