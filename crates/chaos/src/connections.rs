//! The ways to a PostgreSQL server: with TLS only, through a pooler in transaction
//! mode, and by a failover to its replica.

use std::time::Duration;

use anyhow::Context as _;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tidings_sim::{PgBouncer, PostgresServer, WorldConfig};

use crate::environment::{Environment, act_on_server, blocking, web};
use crate::ledger::LedgerSummary;
use crate::scenario::Measured;
use crate::setting::Setting;

const ALL: &str = "poll,fetch,deliver";

/// How soon work must go on after a failover.
const RECOVERY_TIMEOUT: Duration = Duration::from_secs(10);

fn busy(setting: Setting) -> WorldConfig {
    WorldConfig {
        latency: true,
        ..web(setting.size(6, 20), setting.size(40, 400))
    }
}

/// TCP with TLS and a password; the socket is for this process.
const ACCESS: &str = "local all all trust\nhostssl all all 127.0.0.1/32 scram-sha-256\n";

pub(crate) async fn tls_only(setting: Setting) -> anyhow::Result<Measured> {
    let (authority, certificate, key) = certificates()?;
    let (server, address) = blocking(move || {
        let files = [
            ("pg_hba.conf", ACCESS),
            ("server.crt", certificate.as_str()),
            ("server.key", key.as_str()),
        ];
        let server = PostgresServer::start_on_tcp(&["ssl=on"], &files)
            .context("PostgreSQL is not available")?;
        server.execute("CREATE ROLE crawler SUPERUSER LOGIN PASSWORD 'secret'")?;
        let address = server.create_database()?;
        Ok((server, address))
    })
    .await?;
    let env = Environment::at(setting, busy(setting), address).await?;
    std::fs::write(env.folder().join("ca.pem"), authority)?;
    let port = server.port().context("no port")?;
    let database = env.address.rsplit('/').next().unwrap_or_default();
    let verified = format!(
        "postgres://crawler:secret@localhost:{port}/{database}\
         ?sslmode=verify-full&sslrootcert=ca.pem&channel_binding=require"
    );
    let by_default = format!("postgres://crawler:secret@127.0.0.1:{port}/{database}");
    let processes = [
        env.start_at(&verified, ALL, &[])?,
        env.start_at(&by_default, "fetch,deliver", &[])?,
    ];
    env.wait_until_delivered(setting.work_timeout()).await?;
    drop(processes);
    let text = "verify-full with channel binding beside the default";
    Ok(Measured::new(true, text).with_ledger(&LedgerSummary::of(&env)))
}

/// An authority, and a certificate for localhost with its key: PEM.
fn certificates() -> anyhow::Result<(String, String, String)> {
    let mut authority = CertificateParams::default();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate()?)?;
    let key = KeyPair::generate()?;
    let server = CertificateParams::new(["localhost".to_owned()])?.signed_by(&key, &authority)?;
    Ok((authority.pem(), server.pem(), key.serialize_pem()))
}

/// Two server connections for two processes, one of which is killed.
pub(crate) async fn pooler(setting: Setting) -> anyhow::Result<Measured> {
    let (env, server) = Environment::on_own_server(setting, busy(setting)).await?;
    let (_server, bouncer) = blocking(move || {
        let bouncer = PgBouncer::start(&server).context("PgBouncer did not start")?;
        Ok((server, bouncer))
    })
    .await?;
    let Some(bouncer) = bouncer else {
        return Ok(Measured::skipped("pgbouncer (apt-get install pgbouncer)"));
    };
    let database = env.address.rsplit('/').next().unwrap_or_default();
    let address = bouncer.address(database);
    let start = |roles: &str| env.start_at(&address, roles, &["store.pooler=true"]);
    let (steady, killed) = (start(ALL)?, start("fetch,deliver")?);
    env.wait_for_requests(30, setting.step_timeout()).await?;
    killed.kill()?;
    let again = start("fetch,deliver")?;
    env.wait_until_delivered(setting.work_timeout()).await?;
    drop((steady, again));
    let text = "two server connections for two processes, one killed";
    Ok(Measured::new(true, text).with_ledger(&LedgerSummary::of(&env)))
}

/// The primary dies, its synchronous replica is promoted; the address names both.
pub(crate) async fn failover(setting: Setting) -> anyhow::Result<Measured> {
    let (primary, replica) = blocking(|| {
        let primary = PostgresServer::start(&[]).context("PostgreSQL is not available")?;
        let replica = primary
            .start_synchronous_replica()
            .context("no replica of PostgreSQL")?;
        Ok((primary, replica))
    })
    .await?;
    let hosts = format!("{},{}", primary.host(), replica.host());
    let address = format!("postgres://tidings@{hosts}/postgres");
    let env = Environment::at(setting, busy(setting), address).await?;
    let mut processes = [env.start(ALL, &[])?, env.start("fetch,deliver", &[])?];
    env.wait_for_requests(40, setting.step_timeout()).await?;
    let _primary = act_on_server(primary, PostgresServer::kill).await?;
    let _replica = blocking(move || {
        replica.promote().context("the replica was not promoted")?;
        Ok(replica)
    })
    .await?;
    let back = env.wait_for_requests(20, setting.step_timeout()).await?;
    env.wait_until_delivered(setting.work_timeout()).await?;
    let mut exited = 0;
    for process in &mut processes {
        exited += usize::from(process.exit_code()?.is_some());
    }
    drop(processes);
    let text = format!(
        "twenty requests within {:.1} s of the promotion, {exited} processes exited",
        back.as_secs_f64()
    );
    Ok(Measured::new(exited == 0, text)
        .with_ledger(&LedgerSummary::of(&env))
        .in_time(back <= RECOVERY_TIMEOUT))
}
