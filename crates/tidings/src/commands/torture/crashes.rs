//! Processes that die, are stopped, or are asked to end, at the worst moments.

use std::time::{Duration, Instant};

use tidings_sim::{Act, Fault, FaultRule, RawServer, Target, When};
use tidings_store::Status;

use super::books::Books;
use super::child::submission;
use super::ground::{Ground, INDEX, Process, this_program, until, web};
use super::{Measured, Setting};

const ALL: &str = "poll,fetch,deliver";

/// For a while no article comes; whoever waits for one dies.
pub(super) async fn killed_after_claim(setting: Setting) -> anyhow::Result<Measured> {
    let mut world = web(4, 10);
    let a_second = Duration::from_secs(1);
    let while_it_lasts = When::Between(world.start, world.start + a_second);
    let hang = FaultRule::new(Target::Articles, while_it_lasts, Fault::Hang);
    world.scripts = (0..4).map(|site| (site, vec![hang.clone()])).collect();
    let ground = Ground::new(setting, world).await?;
    let first = ground.start(ALL, &[])?;
    until(setting.soon(), "a claim of every host", async || {
        Ok(ground.count(Status::Fetching).await? >= 2)
    })
    .await?;
    first.kill()?;
    ground.sim.clock().advance(a_second);
    let second = ground.start(ALL, &[])?;
    let back = until(setting.soon(), "another claim", async || {
        Ok(ground.count(Status::Fetched).await? > 0)
    })
    .await?;
    ground.finish(setting.late()).await?;
    drop(second);
    let books = Books::of(&ground);
    let limit = setting.lease() + Duration::from_secs(5);
    let text = format!("back after {:.1} s; {books}", back.as_secs_f64());
    Ok(Measured::new(books.are_right(), text).in_time(back <= limit))
}

/// As soon as some pages were served, whoever asked for them dies.
pub(super) async fn killed_after_fetch(setting: Setting) -> anyhow::Result<Measured> {
    let ground = Ground::new(setting, web(setting.size(12, 40), setting.size(15, 50))).await?;
    let deaths = setting.size(4, 6);
    for _ in 0..deaths {
        let process = ground.start(ALL, &[])?;
        ground
            .requests(setting.size(20, 40), setting.soon())
            .await?;
        process.kill()?;
    }
    let last = ground.start(ALL, &[])?;
    ground.finish(setting.late()).await?;
    drop(last);
    let books = Books::of(&ground);
    let again = most_often_asked(&ground) - 1;
    Ok(Measured::new(
        books.are_right() && again <= deaths,
        format!("{deaths} deaths, no page asked for more than {again} times more; {books}"),
    ))
}

fn most_often_asked(ground: &Ground) -> usize {
    let mut times = std::collections::BTreeMap::new();
    for record in ground.sim.log().snapshot() {
        if record.path != "/robots.txt" && !record.path.contains("feed") {
            *times.entry((record.host, record.path)).or_insert(0) += 1;
        }
    }
    times.into_values().max().unwrap_or(1)
}

/// The index stores, says nothing, and whoever waits for its answer dies.
pub(super) async fn killed_after_delivery(setting: Setting) -> anyhow::Result<Measured> {
    let ground = Ground::new(setting, web(6, setting.size(15, 50))).await?;
    let fetcher = ground.start("poll,fetch", &[])?;
    ground.fetched(setting.late()).await?;
    drop(fetcher);
    let deaths = 3;
    ground.index.set_mute(true);
    for death in 1..=deaths {
        let before = ground.index.bulk_sizes().len();
        let deliverer = ground.start("deliver", &[])?;
        // After a death its orders are another's when their lease has ended.
        until(
            setting.late(),
            "the index to be given something",
            async || Ok(ground.index.bulk_sizes().len() > before),
        )
        .await
        .map_err(|error| {
            error.context(format!("before death {death}: {}", deliverer.last_words()))
        })?;
        deliverer.kill()?;
    }
    ground.index.set_mute(false);
    let stored = ground.index.documents(INDEX).len();
    let last = ground.start("deliver", &[])?;
    ground.finish(setting.late()).await?;
    drop(last);
    let books = Books::of(&ground);
    let handed: usize = ground.index.bulk_sizes().iter().sum();
    Ok(Measured::new(
        books.are_right() && stored > 0 && handed > books.expected,
        format!("{deaths} deaths with {stored} stored; {handed} handed over; {books}"),
    ))
}

/// A worker sleeps longer than its leases, and another takes over; then it wakes.
pub(super) async fn stopped_beyond_its_lease(setting: Setting) -> anyhow::Result<Measured> {
    let world = tidings_sim::WorldConfig {
        latency: true,
        ..web(setting.size(10, 30), setting.size(20, 60))
    };
    let ground = Ground::new(setting, world).await?;
    let sleeper = ground.start(ALL, &[])?;
    ground.requests(40, setting.soon()).await?;
    sleeper.signal("STOP")?;
    let other = ground.start(ALL, &["fetch.at_once=4"])?;
    let asleep = setting.size(setting.lease() * 2, Duration::from_secs(300));
    tokio::time::sleep(asleep).await;
    sleeper.signal("CONT")?;
    ground.finish(setting.late()).await?;
    tokio::time::sleep(Duration::from_secs(1)).await;
    drop((sleeper, other));
    let books = Books::of(&ground);
    let text = format!("asleep for {} s; {books}", asleep.as_secs());
    Ok(Measured::new(books.are_right(), text))
}

/// SIGTERM in the middle of the work, and another while no server answers.
pub(super) async fn asked_to_end(setting: Setting) -> anyhow::Result<Measured> {
    let world = tidings_sim::WorldConfig {
        latency: true,
        ..web(setting.size(20, 60), 30)
    };
    let ground = Ground::new(setting, world).await?;
    let process = ground.start(ALL, &[])?;
    ground.requests(60, setting.soon()).await?;
    let (code, taken) = end(setting, process).await?;
    let left = ground.count(Status::Fetching).await?;
    let mut measured = Measured::new(
        code == 0 && left == 0,
        format!(
            "ended with {code} after {:.1} s, {left} leases left",
            taken.as_secs_f64()
        ),
    )
    .in_time(taken <= Duration::from_secs(30));
    let last = ground.start(ALL, &[])?;
    ground.finish(setting.late()).await?;
    drop(last);
    let books = Books::of(&ground);
    measured = measured.and(books.are_right(), &books);
    if setting.quick {
        return Ok(measured);
    }
    let mut world = web(50, 6);
    let hang = FaultRule::new(Target::Articles, When::Always, Fault::Hang);
    world.scripts = (0..50).map(|site| (site, vec![hang.clone()])).collect();
    let ground = Ground::new(setting, world).await?;
    let patient = ["net.headers_seconds=600", "net.total_seconds=600"];
    let process = ground.start(ALL, &patient)?;
    until(setting.soon(), "thirty requests that hang", async || {
        Ok(ground.count(Status::Fetching).await? >= 30)
    })
    .await?;
    let (code, taken) = end(setting, process).await?;
    let left = ground.count(Status::Fetching).await?;
    Ok(measured.and(
        code == 0 && left == 0 && taken <= Duration::from_secs(35),
        format!(
            "while no server answers: ended with {code} after {:.1} s, {left} leases left",
            taken.as_secs_f64()
        ),
    ))
}

/// Asks a process to end; its exit code, and how long that took.
pub(super) async fn end(setting: Setting, mut process: Process) -> anyhow::Result<(i32, Duration)> {
    let asked = Instant::now();
    process.signal("TERM")?;
    loop {
        if let Some(code) = process.ended()? {
            return Ok((code, asked.elapsed()));
        }
        anyhow::ensure!(
            asked.elapsed() < setting.soon(),
            "it did not end when it was asked to"
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// One page aborts the process that reads it, another makes the reader panic.
pub(super) async fn poison(setting: Setting) -> anyhow::Result<Measured> {
    let ground = Ground::new(setting, web(1, 0)).await?;
    let server = RawServer::start("127.0.0.1:0".parse()?, |head| {
        if head.starts_with("GET /robots.txt") {
            return Act::answer("404 Not Found", b"");
        }
        let page = "<title>Bread</title><article><p>Bread has been baked for some fourteen thousand years, and every year in new ways.</p></article>";
        Act::answer("200 OK\r\nContent-Type: text/html", page.as_bytes())
    })
    .await?;
    let at = |path: &str| format!("http://{}/{path}", server.address());
    let paths = ["poison", "broken", "1", "2", "3", "4", "5"];
    let submissions = paths.map(|path| submission(&at(path)));
    let submissions = submissions
        .into_iter()
        .collect::<anyhow::Result<Vec<_>>>()?;
    ground.store.submit(&submissions).await?;
    let ids: Vec<_> = submissions.iter().map(|one| one.target.id()).collect();
    let start = || {
        let mut command = this_program()?;
        command.args(["torture", "--child", "reader"]);
        let port = format!("egress.ports={}", server.address().port());
        // Always the same folder: what was being read is written down there.
        ground.configure(&mut command, &ground.address, "reader", &[&port]);
        ground.spawn(command)
    };
    let (mut deaths, mut process) = (0, start()?);
    let begun = Instant::now();
    let poisoned = loop {
        let row = ground.store.url(ids[0]).await?;
        if let Some(row) = row.filter(|row| row.status == Status::Dead) {
            break row;
        }
        if process.ended()?.is_some() {
            deaths += 1;
            process = start()?;
        }
        anyhow::ensure!(
            begun.elapsed() < setting.late(),
            "the page was never put aside"
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    until(setting.late(), "the other pages", async || {
        Ok(ground.count(Status::Fetched).await? == 5)
    })
    .await?;
    let broken = ground.store.url(ids[1]).await?;
    let is_kept = broken.is_some_and(|row| row.status == Status::Pending && row.retry_count == 0);
    let is_alive = process.ended()?.is_none();
    let reason = poisoned.reason.unwrap_or_default();
    Ok(Measured::new(
        deaths == 3 && reason == "quarantined" && is_kept && is_alive,
        format!(
            "{deaths} deaths, then {reason}; 5 of 5 others are documents; the broken one is kept: {is_kept}"
        ),
    ))
}
