//! A PostgreSQL server that is killed, restarted, blackholed or read-only.

use std::time::{Duration, Instant};

use serde_json::Value;
use tidings_sim::{Expected, PostgresServer, RelayMode, TcpRelay};
use tidings_store::{Filter, Role, Status};
use tokio_postgres::NoTls;

use crate::api_client::{ApiClient, lines};
use crate::environment::{Environment, Process, act_on_server, wait_until, web};
use crate::ledger::LedgerSummary;
use crate::scenario::Measured;
use crate::setting::Setting;

const RECOVERY_TIMEOUT: Duration = Duration::from_secs(10);
const SECRET: &str = "tdg_only-for-this-scenario";

/// A web that occupies two processes for about this many seconds.
fn busy(setting: Setting, seconds: u32) -> tidings_sim::WorldConfig {
    let sites = setting.size(6, 20);
    // Each host is fetched from every twenty milliseconds, at best.
    tidings_sim::WorldConfig {
        latency: true,
        ..web(sites, seconds * 12)
    }
}

/// How many of the processes have exited; none should.
fn exited(processes: &mut [Process]) -> anyhow::Result<usize> {
    let mut exited = 0;
    for process in processes {
        exited += usize::from(process.exit_code()?.is_some());
    }
    Ok(exited)
}

async fn outages(
    setting: Setting,
    times: u32,
    between: Duration,
    down: Duration,
) -> anyhow::Result<Measured> {
    let seconds = (between + down).as_secs() as u32 * times;
    let (env, mut server) =
        Environment::on_own_server(setting, busy(setting, seconds.min(setting.size(4, 90))))
            .await?;
    let mut processes = [
        env.start("poll,fetch,deliver", &[])?,
        env.start("fetch,deliver", &[])?,
    ];
    let (mut slowest, mut outages) = (Duration::ZERO, 0);
    env.wait_for_requests(20, setting.step_timeout()).await?;
    for _ in 0..times {
        tokio::time::sleep(between).await;
        server = act_on_server(server, PostgresServer::kill).await?;
        tokio::time::sleep(down).await;
        server = act_on_server(server, PostgresServer::restart).await?;
        outages += 1;
        match env.wait_for_requests(1, setting.step_timeout()).await {
            Ok(back) => slowest = slowest.max(back),
            // Nothing is left to be fetched.
            Err(_)
                if env
                    .wait_until_delivered(setting.step_timeout())
                    .await
                    .is_ok() =>
            {
                break;
            }
            Err(error) => return Err(error),
        }
    }
    env.wait_until_delivered(setting.work_timeout()).await?;
    let exited = exited(&mut processes)?;
    drop(processes);
    let summary = LedgerSummary::of(&env);
    Ok(Measured::new(
        exited == 0,
        format!(
            "{outages} outages, work resumed within {:.1} s, {exited} processes exited",
            slowest.as_secs_f64()
        ),
    )
    .with_ledger(&summary)
    .in_time(slowest <= RECOVERY_TIMEOUT))
}

pub(crate) async fn killed_during_claims(setting: Setting) -> anyhow::Result<Measured> {
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

pub(crate) async fn restarted(setting: Setting) -> anyhow::Result<Measured> {
    let between = Duration::from_secs(setting.size(2, 20));
    outages(setting, setting.size(3, 15), between, Duration::ZERO).await
}

/// The server is killed during a bulk submit; the client retries.
pub(crate) async fn killed_during_submit(setting: Setting) -> anyhow::Result<Measured> {
    let (env, mut server) = Environment::on_own_server(setting, web(1, 0)).await?;
    env.store
        .add_token("chaos", Role::Admin, SECRET, None)
        .await?;
    let process = env.start("serve", &[])?;
    let api = ApiClient::new(&process.announced("dashboard").await?, SECRET)?;
    let urls = setting.size(10_000, 100_000);
    let body = lines(0, urls);
    let path = "/api/v1/frontier/submit/bulk";
    let submit = async {
        let mut rejected = 0;
        let begun = Instant::now();
        loop {
            match api.post(path, "the-one-key", &body).await {
                Ok((200, response)) => return Ok((rejected, response)),
                _ if begun.elapsed() > setting.work_timeout() => {
                    anyhow::bail!("the submit never succeeded")
                }
                _ => rejected += 1,
            }
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    };
    let killed = async {
        for pause in [60, 400] {
            tokio::time::sleep(Duration::from_millis(pause)).await;
            server = act_on_server(server, PostgresServer::kill).await?;
            tokio::time::sleep(Duration::from_millis(500)).await;
            server = act_on_server(server, PostgresServer::restart).await?;
        }
        Ok::<_, anyhow::Error>(server)
    };
    let (submitted, killed) = tokio::join!(submit, killed);
    let _server = killed?;
    let (rejected, response) = submitted?;
    let again = api.post(path, "the-one-key", &body).await?;
    let rows = env.store.count(&Filter::default()).await?;
    let is_same = again.0 == 200 && totals(&again.1) == totals(&response);
    Ok(Measured::new(
        rows == urls as u64 && rejected > 0 && is_same,
        format!(
            "{rejected} attempts rejected, then {rows} rows of {urls} URLs; same totals in a replay: {is_same}"
        ),
    ))
}

/// The totals of a bulk response; a replay of a long one has no more.
fn totals(response: &str) -> Option<Vec<Value>> {
    let (_, body) = response.split_once("\r\n\r\n")?;
    let report: Value = serde_json::from_str(body).ok()?;
    let names = ["total", "new", "raised", "known", "invalid"];
    Some(names.map(|name| report[name].clone()).to_vec())
}

/// Every byte between the processes and the database is dropped for a while.
pub(crate) async fn blackholed(setting: Setting) -> anyhow::Result<Measured> {
    let silence = Duration::from_secs(setting.size(6, 60));
    let (env, server) =
        Environment::on_own_server(setting, busy(setting, setting.size(4, 10))).await?;
    let relay = TcpRelay::start("127.0.0.1:0", &server.socket()).await?;
    let database = env.address.rsplit('/').next().unwrap_or_default();
    let relayed = format!("postgres://tidings@{}/{database}", relay.address());
    let mut processes = [
        env.start_at(&relayed, "poll,fetch,deliver", &[])?,
        env.start_at(&relayed, "fetch,deliver", &[])?,
    ];
    env.wait_for_requests(40, setting.step_timeout()).await?;
    relay.set(RelayMode::Silent);
    tokio::time::sleep(silence).await;
    let memory = processes.iter().map(Process::peak_mb).max().unwrap_or(0);
    // What was in flight is lost, as it is when a firewall drops its state.
    relay.set(RelayMode::Broken);
    relay.set(RelayMode::Whole);
    let back = env.wait_for_requests(1, setting.step_timeout()).await?;
    env.wait_until_delivered(setting.work_timeout()).await?;
    let exited = exited(&mut processes)?;
    drop(processes);
    let summary = LedgerSummary::of(&env);
    Ok(Measured::new(
        exited == 0,
        format!(
            "silent for {} s, work resumed after {:.1} s, {exited} processes exited, peak {memory} MB",
            silence.as_secs(),
            back.as_secs_f64()
        ),
    )
    .with_ledger(&summary)
    .in_time(back <= RECOVERY_TIMEOUT))
}

/// The database is read-only for a while.
pub(crate) async fn read_only(setting: Setting) -> anyhow::Result<Measured> {
    let (env, server) = Environment::on_own_server(setting, busy(setting, 3)).await?;
    env.store
        .add_token("chaos", Role::Admin, SECRET, None)
        .await?;
    let mut processes = [
        env.start("poll,fetch,deliver", &[])?,
        env.start("serve", &[])?,
    ];
    let api = ApiClient::new(&processes[1].announced("dashboard").await?, SECRET)?;
    let path = "/api/v1/frontier/submit/bulk";
    env.wait_for_requests(20, setting.step_timeout()).await?;
    let database = env.address.rsplit('/').next().unwrap_or_default();
    set_read_only(&server, database, true).await?;
    // Connections that are open notice with their next statement.
    tokio::time::sleep(Duration::from_millis(500)).await;
    let rejected = api.post(path, "while-read-only", &lines(0, 100)).await?.0;
    tokio::time::sleep(Duration::from_secs(setting.size(2, 30))).await;
    let of_bulk = Filter {
        text: Some(".example/story-".to_owned()),
        ..Filter::default()
    };
    let stored = env.store.count(&of_bulk).await?;
    set_read_only(&server, database, false).await?;
    let back = Instant::now();
    loop {
        let response = api.post(path, "afterwards", &lines(1000, 100)).await;
        if matches!(response, Ok((200, _))) {
            break;
        }
        anyhow::ensure!(
            back.elapsed() < setting.step_timeout(),
            "submits are still rejected: {response:?}"
        );
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    let back = back.elapsed();
    // The hosts of the bulk do not exist, so its URLs stay pending; all others must be done.
    let ledger = env.sim.ledger();
    let expected = ledger
        .entries()
        .filter(|entry| entry.expected == Expected::Document);
    let expected = expected.count() as i64;
    wait_until(setting.work_timeout(), "the pages", async || {
        let is_fetched = env.count(Status::Fetched).await? >= expected;
        Ok(is_fetched && env.is_delivered().await?)
    })
    .await?;
    let exited = exited(&mut processes)?;
    drop(processes);
    let summary = LedgerSummary::of(&env);
    Ok(Measured::new(
        rejected == 503 && stored == 0 && exited == 0,
        format!(
            "rejected with {rejected}, {stored} stored; accepted again after {:.1} s, {exited} processes exited",
            back.as_secs_f64()
        ),
    )
    .with_ledger(&summary)
    .in_time(back <= RECOVERY_TIMEOUT))
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
