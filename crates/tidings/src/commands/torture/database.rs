//! A PostgreSQL server that dies, restarts, falls silent or may only be read.

use std::time::{Duration, Instant};

use tidings_sim::{Expected, PostgresServer, RelayMode, TcpRelay};
use tidings_store::{Filter, Role, Status};
use tokio_postgres::NoTls;

use super::ask::{AdapterHttp, lines};
use super::books::Books;
use super::ground::{Ground, Process, done_to, until, web};
use super::{Measured, Setting};

const BACK: Duration = Duration::from_secs(10);
const SECRET: &str = "tdg_only-for-this-scenario";

/// A web that keeps two processes busy for so many seconds.
fn busy(setting: Setting, seconds: u32) -> tidings_sim::WorldConfig {
    let sites = setting.size(6, 20);
    // Each host is asked every twenty milliseconds, at best.
    tidings_sim::WorldConfig {
        latency: true,
        ..web(sites, seconds * 12)
    }
}

/// Of processes that should all be alive.
fn dead(processes: &mut [Process]) -> anyhow::Result<usize> {
    let mut dead = 0;
    for process in processes {
        dead += usize::from(process.ended()?.is_some());
    }
    Ok(dead)
}

async fn outages(
    setting: Setting,
    times: u32,
    between: Duration,
    down: Duration,
) -> anyhow::Result<Measured> {
    let seconds = (between + down).as_secs() as u32 * times;
    let (ground, mut server) =
        Ground::on_own_server(setting, busy(setting, seconds.min(setting.size(4, 90)))).await?;
    let mut processes = [
        ground.start("poll,fetch,deliver", &[])?,
        ground.start("fetch,deliver", &[])?,
    ];
    let (mut slowest, mut outages) = (Duration::ZERO, 0);
    ground.requests(20, setting.soon()).await?;
    for _ in 0..times {
        tokio::time::sleep(between).await;
        server = done_to(server, PostgresServer::kill).await?;
        tokio::time::sleep(down).await;
        server = done_to(server, PostgresServer::restart).await?;
        outages += 1;
        match ground.requests(1, setting.soon()).await {
            Ok(back) => slowest = slowest.max(back),
            // Nothing is left to be asked for.
            Err(_) if ground.finish(setting.soon()).await.is_ok() => break,
            Err(error) => return Err(error),
        }
    }
    ground.finish(setting.late()).await?;
    let dead = dead(&mut processes)?;
    drop(processes);
    let books = Books::of(&ground);
    Ok(Measured::new(
        books.are_right() && dead == 0,
        format!(
            "{outages} outages, back to work after {:.1} s at most, {dead} processes ended; {books}",
            slowest.as_secs_f64()
        ),
    )
    .in_time(slowest <= BACK))
}

pub(super) async fn killed_mid_claim(setting: Setting) -> anyhow::Result<Measured> {
    let (between, down) = setting.size((700, 700), (4_000, 3_000));
    let times = setting.size(3, 10);
    outages(
        setting,
        times,
        Duration::from_millis(between),
        Duration::from_millis(down),
    )
    .await
}

pub(super) async fn restarting(setting: Setting) -> anyhow::Result<Measured> {
    let between = Duration::from_secs(setting.size(2, 20));
    outages(setting, setting.size(3, 15), between, Duration::ZERO).await
}

/// The server is killed while it takes many URLs; the client asks again.
pub(super) async fn killed_mid_submit(setting: Setting) -> anyhow::Result<Measured> {
    let (ground, mut server) = Ground::on_own_server(setting, web(1, 0)).await?;
    ground
        .store
        .add_token("torture", Role::Admin, SECRET, None)
        .await?;
    let process = ground.start("serve", &[])?;
    let asker = AdapterHttp::new(&process.told("dashboard").await?, SECRET)?;
    let urls = setting.size(10_000, 100_000);
    let body = lines(0, urls);
    let path = "/api/v1/frontier/submit/bulk";
    let submit = async {
        let mut refusals = 0;
        let begun = Instant::now();
        loop {
            match asker.post(path, "the-one-key", &body).await {
                Ok((200, answer)) => return Ok((refusals, answer)),
                _ if begun.elapsed() > setting.late() => anyhow::bail!("it was never taken"),
                _ => refusals += 1,
            }
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    };
    let killed = async {
        for pause in [60, 400] {
            tokio::time::sleep(Duration::from_millis(pause)).await;
            server = done_to(server, PostgresServer::kill).await?;
            tokio::time::sleep(Duration::from_millis(500)).await;
            server = done_to(server, PostgresServer::restart).await?;
        }
        Ok::<_, anyhow::Error>(server)
    };
    let (submitted, killed) = tokio::join!(submit, killed);
    let _server = killed?;
    let (refusals, answer) = submitted?;
    let again = asker.post(path, "the-one-key", &body).await?;
    let rows = ground.store.count(&Filter::default()).await?;
    let is_same = again.0 == 200 && tail(&again.1) == tail(&answer);
    Ok(Measured::new(
        rows == urls as u64 && refusals > 0 && is_same,
        format!(
            "{refusals} refused, then taken: {rows} rows of {urls} URLs; the same answer when sent once more: {is_same}"
        ),
    ))
}

/// The body of an answer.
fn tail(answer: &str) -> &str {
    answer.split_once("\r\n\r\n").map_or("", |(_, body)| body)
}

/// Every byte between the processes and the database is held back.
pub(super) async fn black_hole(setting: Setting) -> anyhow::Result<Measured> {
    let silence = Duration::from_secs(setting.size(6, 60));
    let (ground, server) =
        Ground::on_own_server(setting, busy(setting, setting.size(4, 10))).await?;
    let relay = TcpRelay::start("127.0.0.1:0", &server.socket()).await?;
    let database = ground.address.rsplit('/').next().unwrap_or_default();
    let cable = format!("postgres://tidings@{}/{database}", relay.address());
    let mut processes = [
        ground.start_at(&cable, "poll,fetch,deliver", &[])?,
        ground.start_at(&cable, "fetch,deliver", &[])?,
    ];
    ground.requests(40, setting.soon()).await?;
    relay.set(RelayMode::Silent);
    tokio::time::sleep(silence).await;
    let memory = processes.iter().map(Process::peak_mb).max().unwrap_or(0);
    // What was under way is lost, as it is when a firewall forgets.
    relay.set(RelayMode::Broken);
    relay.set(RelayMode::Whole);
    let back = ground.requests(1, setting.soon()).await?;
    ground.finish(setting.late()).await?;
    let dead = dead(&mut processes)?;
    drop(processes);
    let books = Books::of(&ground);
    Ok(Measured::new(
        books.are_right() && dead == 0,
        format!(
            "silent for {} s, back to work after {:.1} s, {dead} processes ended, {memory} MB at most; {books}",
            silence.as_secs(),
            back.as_secs_f64()
        ),
    )
    .in_time(back <= BACK))
}

/// The database may only be read for a while.
pub(super) async fn read_only(setting: Setting) -> anyhow::Result<Measured> {
    let (ground, server) = Ground::on_own_server(setting, busy(setting, 3)).await?;
    ground
        .store
        .add_token("torture", Role::Admin, SECRET, None)
        .await?;
    let mut processes = [
        ground.start("poll,fetch,deliver", &[])?,
        ground.start("serve", &[])?,
    ];
    let asker = AdapterHttp::new(&processes[1].told("dashboard").await?, SECRET)?;
    let path = "/api/v1/frontier/submit/bulk";
    ground.requests(20, setting.soon()).await?;
    let database = ground.address.rsplit('/').next().unwrap_or_default();
    set_read_only(&server, database, true).await?;
    // Connections that are open notice with their next statement.
    tokio::time::sleep(Duration::from_millis(500)).await;
    let refused = asker.post(path, "while-read-only", &lines(0, 100)).await?.0;
    tokio::time::sleep(Duration::from_secs(setting.size(2, 30))).await;
    let of_bulk = Filter {
        text: Some(".example/story-".to_owned()),
        ..Filter::default()
    };
    let taken = ground.store.count(&of_bulk).await?;
    set_read_only(&server, database, false).await?;
    let back = Instant::now();
    loop {
        let answered = asker.post(path, "afterwards", &lines(1000, 100)).await;
        if matches!(answered, Ok((200, _))) {
            break;
        }
        anyhow::ensure!(
            back.elapsed() < setting.soon(),
            "submits are still refused: {answered:?}"
        );
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    let back = back.elapsed();
    // The URLs of the bulk lead nowhere and wait; all others must be done.
    let ledger = ground.sim.ledger();
    let expected = ledger
        .entries()
        .filter(|entry| entry.expected == Expected::Document);
    let expected = expected.count() as i64;
    until(setting.late(), "the pages", async || {
        let is_fetched = ground.count(Status::Fetched).await? >= expected;
        Ok(is_fetched && ground.is_delivered().await?)
    })
    .await?;
    let dead = dead(&mut processes)?;
    drop(processes);
    let books = Books::of(&ground);
    Ok(Measured::new(
        books.are_right() && refused == 503 && taken == 0 && dead == 0,
        format!(
            "refused with {refused}, {taken} taken; taken again after {:.1} s, {dead} processes ended; {books}",
            back.as_secs_f64()
        ),
    )
    .in_time(back <= BACK))
}

async fn set_read_only(server: &PostgresServer, database: &str, on: bool) -> anyhow::Result<()> {
    let (client, connection) = tokio_postgres::connect(&server.address(database), NoTls).await?;
    let connection = tokio::spawn(connection);
    client
        .batch_execute("SET default_transaction_read_only = off")
        .await?;
    let on = if on { "on" } else { "off" };
    let set = format!("ALTER SYSTEM SET default_transaction_read_only = {on}");
    client.batch_execute(&set).await?;
    client.batch_execute("SELECT pg_reload_conf()").await?;
    drop(client);
    connection.await??;
    Ok(())
}
