//! How the store connects to PostgreSQL: TLS, a pooler in between, several hosts,
//! and what the pool does with its connections. Real servers.

#![allow(clippy::unwrap_used)]

mod fixture;

use fixture::{WORKER, fetched, submission};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use tidings_sim::{PgBouncer, PostgresServer, postgres_database};
use tidings_store::{ClaimRequest, Completion, Store, StoreOptions, Verdict};

/// The three operations that everything else rests on.
async fn assert_works(store: &Store, host: &str) {
    let urls = [1, 2, 3].map(|n| submission(&format!("https://{host}{n}.example/")));
    let verdicts = store.submit(&urls).await.unwrap();
    assert_eq!(verdicts, [Verdict::New; 3]);
    let claimed = store.claim(&ClaimRequest::new(WORKER, 3)).await.unwrap();
    assert_eq!(claimed.claims.len(), 3);
    let completions = claimed.claims.iter();
    let completions: Vec<_> = completions
        .map(|claim| Completion::new(claim.lease_token, fetched()))
        .collect();
    assert_eq!(store.complete(&completions).await.unwrap(), [true; 3]);
}

fn authority(name: &str) -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name.push(DnType::CommonName, name);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// A certificate for a host or, without one, for a user; PEM, with its key.
fn certificate(
    issuer: &CertifiedIssuer<'static, KeyPair>,
    common_name: &str,
    hosts: &[&str],
) -> (String, String) {
    let hosts: Vec<String> = hosts.iter().map(|&host| host.to_owned()).collect();
    let mut params = CertificateParams::new(hosts).unwrap();
    let name = &mut params.distinguished_name;
    name.push(DnType::CommonName, common_name);
    let key = KeyPair::generate().unwrap();
    let signed = params.signed_by(&key, issuer).unwrap();
    (signed.pem(), key.serialize_pem())
}

/// Accepts TCP with TLS only: a password from `reader`, a certificate from `holder`.
const ACCESS: &str = "local all all trust\n\
    hostssl all holder 127.0.0.1/32 cert\n\
    hostssl all all 127.0.0.1/32 scram-sha-256\n";

struct TlsServer {
    server: PostgresServer,
    folder: tempfile::TempDir,
}

impl TlsServer {
    fn start() -> Self {
        let ours = authority("ours");
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        let (certificate_pem, key) = certificate(&ours, "server", &["localhost"]);
        let (client, client_key) = certificate(&ours, "holder", &[]);
        file("ca.pem", &ours.pem());
        file("other.pem", &authority("other").pem());
        file("client.pem", &client);
        file("client.key", &client_key);
        file("broken.pem", "nothing");
        let files = [
            ("pg_hba.conf", ACCESS),
            ("server.crt", certificate_pem.as_str()),
            ("server.key", key.as_str()),
            ("root.crt", &ours.pem()),
        ];
        let settings = ["fsync=off", "ssl=on", "ssl_ca_file=root.crt"];
        let server = PostgresServer::start_on_tcp(&settings, &files).unwrap();
        for sql in [
            "CREATE ROLE reader SUPERUSER LOGIN PASSWORD 'secret'",
            "CREATE ROLE holder SUPERUSER LOGIN",
        ] {
            server.execute(sql).unwrap();
        }
        Self { server, folder }
    }

    fn address(&self, user: &str, host: &str, parameters: &str) -> String {
        let port = self.server.port().unwrap();
        let folder = self.folder.path().display().to_string();
        let parameters = parameters.replace("FOLDER", &folder.replace('/', "%2F"));
        format!("postgres://{user}@{host}:{port}/postgres?{parameters}")
    }

    async fn version(&self, user: &str, host: &str, parameters: &str) -> Result<(), String> {
        let address = self.address(user, host, parameters);
        let version = Store::schema_version(&address).await;
        version.map(drop).map_err(|error| error.to_string())
    }
}

#[tokio::test]
async fn a_server_that_requires_tls_is_used_by_default() {
    let tls = TlsServer::start();
    let address = tls.address("reader:secret", "localhost", "");
    let store = Store::open(&address, &StoreOptions::default()).await;
    assert_works(&store.unwrap(), "tls").await;
}

#[tokio::test]
async fn the_ssl_mode_decides_what_is_verified() {
    let tls = TlsServer::start();
    let right = "sslrootcert=FOLDER%2Fca.pem";
    let wrong = "sslrootcert=FOLDER%2Fother.pem";
    let (by_name, by_number) = ("localhost", "127.0.0.1");
    let rows = [
        (by_number, "sslmode=prefer".to_owned(), None),
        (by_number, "sslmode=require".to_owned(), None),
        (
            by_number,
            "sslmode=require&channel_binding=require".to_owned(),
            None,
        ),
        (
            by_number,
            "sslmode=disable".to_owned(),
            Some("no encryption"),
        ),
        (by_number, format!("sslmode=verify-ca&{right}"), None),
        (
            by_number,
            format!("sslmode=verify-ca&{wrong}"),
            Some("UnknownIssuer"),
        ),
        (
            by_number,
            format!("sslmode=require&{wrong}"),
            Some("UnknownIssuer"),
        ),
        (by_number, format!("sslmode=prefer&{wrong}"), None),
        (by_name, format!("sslmode=verify-full&{right}"), None),
        (
            by_name,
            format!("sslmode=verify-full&{wrong}"),
            Some("UnknownIssuer"),
        ),
        (
            by_number,
            format!("sslmode=verify-full&{right}"),
            Some("not valid for name"),
        ),
        (
            by_name,
            "sslmode=verify-full&sslrootcert=system".to_owned(),
            Some("UnknownIssuer"),
        ),
    ];
    for (host, parameters, expected) in rows {
        let result = tls.version("reader:secret", host, &parameters).await;
        match (result, expected) {
            (Ok(()), None) => {}
            (Err(why), Some(expected)) => assert!(why.contains(expected), "{parameters}: {why}"),
            (result, _) => panic!("{host} {parameters}: {result:?}"),
        }
    }
}

#[tokio::test]
async fn a_client_certificate_identifies_a_user() {
    let tls = TlsServer::start();
    let client = "sslmode=verify-full&sslrootcert=FOLDER%2Fca.pem\
        &sslcert=FOLDER%2Fclient.pem&sslkey=FOLDER%2Fclient.key";
    assert_eq!(tls.version("holder", "localhost", client).await, Ok(()));
    let without = "sslmode=verify-full&sslrootcert=FOLDER%2Fca.pem";
    let refused = tls.version("holder", "localhost", without).await;
    assert!(refused.unwrap_err().contains("certificate"));
}

#[tokio::test]
async fn a_wrong_tls_parameter_is_an_error_of_the_address() {
    let rows = [
        (
            "sslmode=strict",
            "sslmode must be disable, prefer, require, verify-ca or verify-full",
        ),
        ("sslmode=verify-full", "needs sslrootcert"),
        ("sslcert=/a.pem", "sslcert and sslkey belong together"),
        (
            "sslmode=verify-ca&sslrootcert=/no/such/file",
            "sslrootcert /no/such/file",
        ),
        (
            "sslcert=/no/such/file&sslkey=/none",
            "sslcert /no/such/file",
        ),
    ];
    for (parameters, expected) in rows {
        let address = format!("postgres://me:secret@localhost/tidings?{parameters}");
        let error = Store::schema_version(&address).await.unwrap_err();
        let is_address = matches!(error, tidings_store::StoreError::Address { .. });
        let text = error.to_string();
        assert!(
            is_address && text.contains(expected),
            "{parameters}: {text}"
        );
        assert!(!text.contains("secret"), "{text}");
    }
}

#[tokio::test]
async fn a_folder_of_a_socket_needs_no_tls() {
    let address = postgres_database().unwrap();
    for mode in ["prefer", "require"] {
        let address = format!("{address}?sslmode={mode}");
        Store::schema_version(&address).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_frontier_works_through_a_pooler_in_transaction_mode() {
    let server = PostgresServer::start(&["fsync=off"]).unwrap();
    let Some(bouncer) = PgBouncer::start(&server).unwrap() else {
        println!("skipped: pgbouncer is not installed (apt-get install pgbouncer)");
        return;
    };
    let address = bouncer.address("postgres");
    let mut options = StoreOptions::default();
    options.pooler = true;
    let first = Store::open(&address, &options).await.unwrap();
    let second = Store::open(&address, &options).await.unwrap();
    assert!(Store::schema_version(&address).await.unwrap().is_some());
    // More transactions at a time than the pooler has connections.
    let works = (0..8).map(|n| {
        let store = if n % 2 == 0 { &first } else { &second }.clone();
        tokio::spawn(async move {
            for round in 0..10 {
                let urls = [submission(&format!("https://h{n}.example/{round}"))];
                assert_eq!(store.submit(&urls).await.unwrap(), [Verdict::New]);
                store.stats().await.unwrap();
                let claimed = store.claim(&ClaimRequest::new(n, 1)).await.unwrap();
                for claim in claimed.claims {
                    let completion = Completion::new(claim.lease_token, fetched());
                    assert_eq!(store.complete(&[completion]).await.unwrap(), [true]);
                }
            }
        })
    });
    for work in works.collect::<Vec<_>>() {
        work.await.unwrap();
    }
}

#[tokio::test]
async fn work_goes_on_after_a_failover() {
    let mut primary = PostgresServer::start(&["fsync=off"]).unwrap();
    let replica = primary.start_synchronous_replica().unwrap();
    let hosts = format!("{},{}", primary.host(), replica.host());
    // The replica is named first too: what can't be written to is not used.
    let turned = format!("{},{}", replica.host(), primary.host());
    let options = StoreOptions::default();
    let open = async |hosts: &str| {
        let address = format!("postgres://tidings@{hosts}/postgres");
        Store::open(&address, &options).await.unwrap()
    };
    let (store, other) = (open(&hosts).await, open(&turned).await);
    let urls: Vec<_> = (0..20)
        .map(|n| submission(&format!("https://h{n}.example/")))
        .collect();
    store.submit(&urls[..10]).await.unwrap();
    other.submit(&urls[10..]).await.unwrap();

    primary.kill().unwrap();
    replica.promote().unwrap();

    for (store, worker) in [(&store, 1), (&other, 2)] {
        let request = ClaimRequest::new(worker, 10);
        let mut attempts = 0;
        let claimed = loop {
            match store.claim(&request).await {
                Ok(claimed) => break claimed,
                // The connections to the old primary are noticed one by one.
                Err(error) => assert!(error.is_transient() && attempts < 10, "{error}"),
            }
            attempts += 1;
        };
        assert_eq!(claimed.claims.len(), 10);
        for claim in claimed.claims {
            let completion = Completion::new(claim.lease_token, fetched());
            assert_eq!(store.complete(&[completion]).await.unwrap(), [true]);
        }
    }
    assert_works(&store, "after").await;
}

/// Accepts connections and never says a word, like a server that hangs.
#[tokio::test]
async fn a_host_that_hangs_does_not_keep_the_next_from_being_tried() {
    let server = PostgresServer::start_on_tcp(&["fsync=off"], &[]).unwrap();
    let silent = tokio::net::TcpListener::bind(("127.0.0.1", 0))
        .await
        .unwrap();
    let hanging = silent.local_addr().unwrap().port();
    let port = server.port().unwrap();
    let address = format!("postgres://tidings@127.0.0.1:{hanging},127.0.0.1:{port}/postgres");
    assert_eq!(Store::schema_version(&address).await.unwrap(), None);
}
