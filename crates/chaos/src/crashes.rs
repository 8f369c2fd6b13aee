//! Processes that are killed, paused or terminated at the worst moments.

use std::time::{Duration, Instant};

use tidings_sim::{Act, Fault, FaultRule, RawServer, Target, When};
use tidings_store::Status;

use crate::child::submission;
use crate::environment::{Environment, INDEX, Process, chaos_command, wait_until, web};
use crate::ledger::LedgerSummary;
use crate::scenario::Measured;
use crate::setting::Setting;

const ALL: &str = "poll,fetch,deliver";

/// Articles hang for a while, and the worker that waits for them is killed.
pub(crate) async fn killed_after_claim(setting: Setting) -> anyhow::Result<Measured> {
    let mut world = web(4, 10);
    let a_second = Duration::from_secs(1);
    let during = When::Between(world.start, world.start + a_second);
    let hang = FaultRule::new(Target::Articles, during, Fault::Hang);
    world.scripts = (0..4).map(|site| (site, vec![hang.clone()])).collect();
    let env = Environment::new(setting, world).await?;
    let first = env.start(ALL, &[])?;
    wait_until(setting.step_timeout(), "claims of two hosts", async || {
        Ok(env.count(Status::Fetching).await? >= 2)
    })
    .await?;
    first.kill()?;
    env.sim.clock().advance(a_second);
    let second = env.start(ALL, &[])?;
    let back = wait_until(
        setting.step_timeout(),
        "a page fetched by the second worker",
        async || Ok(env.count(Status::Fetched).await? > 0),
    )
    .await?;
    env.wait_until_delivered(setting.work_timeout()).await?;
    drop(second);
    let summary = LedgerSummary::of(&env);
    let limit = setting.lease() + Duration::from_secs(5);
    let text = format!("claimed again after {:.1} s", back.as_secs_f64());
    Ok(Measured::new(true, text)
        .with_ledger(&summary)
        .in_time(back <= limit))
}

/// As soon as some pages were served, the worker that fetched them is killed.
pub(crate) async fn killed_after_fetch(setting: Setting) -> anyhow::Result<Measured> {
    let env = Environment::new(setting, web(setting.size(12, 40), setting.size(15, 50))).await?;
    let kills = setting.size(4, 6);
    for _ in 0..kills {
        let process = env.start(ALL, &[])?;
        env.wait_for_requests(setting.size(20, 40), setting.step_timeout())
            .await?;
        process.kill()?;
    }
    let last = env.start(ALL, &[])?;
    env.wait_until_delivered(setting.work_timeout()).await?;
    drop(last);
    let summary = LedgerSummary::of(&env);
    let again = max_requests_per_page(&env) - 1;
    Ok(Measured::new(
        again <= kills,
        format!("{kills} workers killed, no page fetched more than {again} times again"),
    )
    .with_ledger(&summary))
}

/// How often the most requested page was requested.
fn max_requests_per_page(env: &Environment) -> usize {
    let mut times = std::collections::BTreeMap::new();
    for record in env.sim.log().snapshot() {
        if record.path != "/robots.txt" && !record.path.contains("feed") {
            *times.entry((record.host, record.path)).or_insert(0) += 1;
        }
    }
    times.into_values().max().unwrap_or(1)
}

/// The index stores documents without responding, and the deliverer that waits
/// for the response is killed.
pub(crate) async fn killed_after_delivery(setting: Setting) -> anyhow::Result<Measured> {
    let env = Environment::new(setting, web(6, setting.size(15, 50))).await?;
    let fetcher = env.start("poll,fetch", &[])?;
    env.wait_until_fetched(setting.work_timeout()).await?;
    drop(fetcher);
    let kills = 3;
    env.index.set_mute(true);
    for kill in 1..=kills {
        let before = env.index.bulk_sizes().len();
        let deliverer = env.start("deliver", &[])?;
        // Deliveries of a killed process are claimed again when their lease expires.
        wait_until(
            setting.work_timeout(),
            "a bulk request to the index",
            async || Ok(env.index.bulk_sizes().len() > before),
        )
        .await
        .map_err(|error| error.context(format!("before kill {kill}: {}", deliverer.log_tail())))?;
        deliverer.kill()?;
    }
    env.index.set_mute(false);
    let stored = env.index.documents(INDEX).len();
    let last = env.start("deliver", &[])?;
    env.wait_until_delivered(setting.work_timeout()).await?;
    drop(last);
    let summary = LedgerSummary::of(&env);
    let delivered: usize = env.index.bulk_sizes().iter().sum();
    Ok(Measured::new(
        stored > 0 && delivered > summary.expected,
        format!("{kills} deliverers killed with {stored} stored; {delivered} deliveries"),
    )
    .with_ledger(&summary))
}

/// A worker is paused beyond its leases, another takes over, then it resumes.
pub(crate) async fn paused_beyond_its_lease(setting: Setting) -> anyhow::Result<Measured> {
    let world = tidings_sim::WorldConfig {
        latency: true,
        ..web(setting.size(10, 30), setting.size(20, 60))
    };
    let env = Environment::new(setting, world).await?;
    let paused = env.start(ALL, &[])?;
    env.wait_for_requests(40, setting.step_timeout()).await?;
    paused.signal("STOP")?;
    let other = env.start(ALL, &["fetch.concurrency=4"])?;
    let pause = setting.size(setting.lease() * 2, Duration::from_secs(300));
    tokio::time::sleep(pause).await;
    paused.signal("CONT")?;
    env.wait_until_delivered(setting.work_timeout()).await?;
    tokio::time::sleep(Duration::from_secs(1)).await;
    drop((paused, other));
    let summary = LedgerSummary::of(&env);
    let text = format!("paused for {} s", pause.as_secs());
    Ok(Measured::new(true, text).with_ledger(&summary))
}

/// SIGTERM in the middle of the work, and once more while no server responds.
pub(crate) async fn terminated(setting: Setting) -> anyhow::Result<Measured> {
    let world = tidings_sim::WorldConfig {
        latency: true,
        ..web(setting.size(20, 60), 30)
    };
    let env = Environment::new(setting, world).await?;
    let process = env.start(ALL, &[])?;
    env.wait_for_requests(60, setting.step_timeout()).await?;
    let (code, taken) = terminate(setting, process).await?;
    let left = env.count(Status::Fetching).await?;
    let mut measured = Measured::new(
        code == 0 && left == 0,
        format!(
            "exited with {code} after {:.1} s, {left} leases left",
            taken.as_secs_f64()
        ),
    )
    .in_time(taken <= Duration::from_secs(30));
    let last = env.start(ALL, &[])?;
    env.wait_until_delivered(setting.work_timeout()).await?;
    drop(last);
    let summary = LedgerSummary::of(&env);
    measured = measured.with_ledger(&summary);
    if setting.quick {
        return Ok(measured);
    }
    let mut world = web(50, 6);
    let hang = FaultRule::new(Target::Articles, When::Always, Fault::Hang);
    world.scripts = (0..50).map(|site| (site, vec![hang.clone()])).collect();
    let env = Environment::new(setting, world).await?;
    let long_timeouts = ["net.headers_seconds=600", "net.total_seconds=600"];
    let process = env.start(ALL, &long_timeouts)?;
    wait_until(
        setting.step_timeout(),
        "thirty requests that hang",
        async || Ok(env.count(Status::Fetching).await? >= 30),
    )
    .await?;
    let (code, taken) = terminate(setting, process).await?;
    let left = env.count(Status::Fetching).await?;
    Ok(measured.and(
        code == 0 && left == 0 && taken <= Duration::from_secs(35),
        format!(
            "while no server responds: exited with {code} after {:.1} s, {left} leases left",
            taken.as_secs_f64()
        ),
    ))
}

/// Sends SIGTERM; returns the exit code, and how long the exit took.
pub(crate) async fn terminate(
    setting: Setting,
    mut process: Process,
) -> anyhow::Result<(i32, Duration)> {
    let sent = Instant::now();
    process.signal("TERM")?;
    loop {
        if let Some(code) = process.exit_code()? {
            return Ok((code, sent.elapsed()));
        }
        anyhow::ensure!(
            sent.elapsed() < setting.step_timeout(),
            "the process did not exit after SIGTERM"
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// One page aborts the process that reads it, another panics the extractor.
pub(crate) async fn crashing_page(setting: Setting) -> anyhow::Result<Measured> {
    let env = Environment::new(setting, web(1, 0)).await?;
    let server = RawServer::start("127.0.0.1:0".parse()?, |head| {
        if head.starts_with("GET /robots.txt") {
            return Act::answer("404 Not Found", b"");
        }
        let page = "<title>Bread</title><article><p>Bread has been baked for some fourteen thousand years, and every year in new ways.</p></article>";
        Act::answer("200 OK\r\nContent-Type: text/html", page.as_bytes())
    })
    .await?;
    let at = |path: &str| format!("http://{}/{path}", server.address());
    let paths = ["abort", "panic", "1", "2", "3", "4", "5"];
    let submissions = paths.map(|path| submission(&at(path)));
    let submissions = submissions
        .into_iter()
        .collect::<anyhow::Result<Vec<_>>>()?;
    env.store.submit(&submissions).await?;
    let ids: Vec<_> = submissions.iter().map(|one| one.target.id()).collect();
    let start = || {
        let mut command = chaos_command()?;
        command
            .args(["child", "worker", "--store", &env.address])
            .args(["--port", &server.address().port().to_string()])
            .args(["--lease-seconds", &setting.lease().as_secs().to_string()])
            // The same folder each time: the next process reads the journal there.
            .args(["--journal", "journal"])
            .current_dir(env.folder());
        env.spawn(command)
    };
    let (mut crashes, mut process) = (0, start()?);
    let begun = Instant::now();
    let quarantined = loop {
        let row = env.store.url(ids[0]).await?;
        if let Some(row) = row.filter(|row| row.status == Status::Dead) {
            break row;
        }
        if process.exit_code()?.is_some() {
            crashes += 1;
            process = start()?;
        }
        anyhow::ensure!(
            begun.elapsed() < setting.work_timeout(),
            "the page was never quarantined"
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    wait_until(setting.work_timeout(), "the other pages", async || {
        Ok(env.count(Status::Fetched).await? == 5)
    })
    .await?;
    // The others may be done while this page is still leased, by this process or by
    // one that crashed. So it gets time to be deferred; whether it is then pending,
    // leased, failed or fetched, it is not lost.
    let deferred = wait_until(setting.step_timeout(), "the page that panics", async || {
        let row = env.store.url(ids[1]).await?;
        Ok(row.is_none_or(|row| row.status == Status::Pending && row.reason.is_some()))
    })
    .await;
    let state = env.store.url(ids[1]).await?.map(|row| row.status);
    let is_lost = matches!(state, None | Some(Status::Dead));
    let is_alive = process.exit_code()?.is_none();
    let reason = quarantined.reason.unwrap_or_default();
    Ok(Measured::new(
        crashes == 3 && reason == "quarantined" && !is_lost && is_alive,
        format!(
            "{crashes} crashes, then {reason}; 5 of 5 others are documents; the page that panics is {} (deferred in time: {}); the last process runs: {is_alive}",
            state.map_or("missing", Status::as_str),
            deferred.is_ok()
        ),
    ))
}
