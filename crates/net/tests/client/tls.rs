//! TLS that is not to be trusted is refused, and what is trusted is spoken over
//! HTTP/1.1 or HTTP/2 as the server prefers.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rcgen::{
    BasicConstraints, Certificate, CertificateParams, IsCa, Issuer, KeyPair, date_time_ymd,
};
use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tidings_net::{Client, NetOptions, Protocol};
use tidings_sim::{Act, DnsAnswer, DnsServer};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use crate::{get, options, raw};

struct Authority {
    certificate: Certificate,
    issuer: Issuer<'static, KeyPair>,
}

fn authority() -> Authority {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let certificate = params.self_signed(&key).unwrap();
    Authority {
        certificate,
        issuer: Issuer::new(params, key),
    }
}

fn leaf(
    authority: &Authority,
    name: &str,
    years: (i32, i32),
) -> (CertificateDer<'static>, PrivateKeyDer<'static>) {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
    params.not_before = date_time_ymd(years.0, 1, 1);
    params.not_after = date_time_ymd(years.1, 1, 1);
    let certificate = params.signed_by(&key, &authority.issuer).unwrap();
    let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    (certificate.der().clone(), key)
}

/// A server that responds with the protocol and the path of the request.
async fn serve(
    identity: (CertificateDer<'static>, PrivateKeyDer<'static>),
    alpn: &[&str],
) -> SocketAddr {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![identity.0], identity.1)
        .unwrap();
    config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.2:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                // A client that refuses us is what the tests are about.
                let Ok(stream) = acceptor.accept(stream).await else {
                    return;
                };
                let is_h2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
                let response = service_fn(
                    |request: hyper::Request<hyper::body::Incoming>| async move {
                        let text = format!("{:?} {}", request.version(), request.uri().path());
                        Ok::<_, std::convert::Infallible>(hyper::Response::new(Full::new(
                            Bytes::from(text),
                        )))
                    },
                );
                let io = TokioIo::new(stream);
                if is_h2 {
                    let http2 = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
                    let _ = http2.serve_connection(io, response).await;
                } else {
                    let _ = hyper::server::conn::http1::Builder::new()
                        .serve_connection(io, response)
                        .await;
                }
            });
        }
    });
    address
}

async fn trusting(authority: &Authority) -> (Client, DnsServer) {
    let dns = DnsServer::start(|_, _| DnsAnswer::Addresses(vec!["127.0.0.2".parse().unwrap()]))
        .await
        .unwrap();
    let client = Client::new(NetOptions {
        dns: vec![dns.address()],
        authorities: vec![authority.certificate.der().clone()],
        ..options()
    });
    (client.unwrap(), dns)
}

#[tokio::test]
async fn trusted_servers_are_spoken_to_as_they_prefer() {
    let authority = authority();
    let (client, _dns) = trusting(&authority).await;
    let rows = [
        (&["h2", "http/1.1"][..], Protocol::Http2, "HTTP/2.0 /a"),
        (&["http/1.1"][..], Protocol::Http1, "HTTP/1.1 /a"),
        (&[][..], Protocol::Http1, "HTTP/1.1 /a"),
    ];
    for (alpn, protocol, body) in rows {
        let address = serve(leaf(&authority, "site.example", (2020, 2090)), alpn).await;
        for _ in 0..2 {
            let url = format!("https://site.example:{}/a", address.port());
            let response = get(&client, &url).await.unwrap();
            assert_eq!(
                (response.protocol, &response.body[..]),
                (protocol, body.as_bytes()),
                "{alpn:?}"
            );
        }
    }
    assert_eq!(
        client.idle_connections(),
        3,
        "each was used twice and pooled"
    );
}

#[tokio::test]
async fn certificates_that_prove_nothing_are_refused() {
    let (trusted, untrusted) = (authority(), authority());
    let (client, _dns) = trusting(&trusted).await;
    let rows = [
        ("expired", leaf(&trusted, "site.example", (2010, 2012))),
        (
            "not yet valid",
            leaf(&trusted, "site.example", (2080, 2090)),
        ),
        (
            "for another name",
            leaf(&trusted, "other.example", (2020, 2090)),
        ),
        (
            "signed by an untrusted authority",
            leaf(&untrusted, "site.example", (2020, 2090)),
        ),
    ];
    for (name, identity) in rows {
        let address = serve(identity, &["h2"]).await;
        let failure = get(
            &client,
            &format!("https://site.example:{}/", address.port()),
        )
        .await
        .unwrap_err();
        assert_eq!(failure.code(), "tls", "{name}: {failure}");
    }
}

#[tokio::test]
async fn a_handshake_that_stalls_or_is_no_handshake_ends() {
    let (client, _dns) = trusting(&authority()).await;
    let silent = raw(|_| vec![Act::Wait(Duration::from_secs(60))]).await;
    let failure = get(
        &client,
        &format!("https://site.example:{}/", silent.address().port()),
    )
    .await
    .unwrap_err();
    assert_eq!(failure.code(), "timeout", "{failure}");

    let listener = TcpListener::bind("127.0.0.2:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let _ =
            tokio::io::AsyncWriteExt::write_all(&mut stream, b"HTTP/1.1 400 Bad Request\r\n\r\n")
                .await;
    });
    let failure = get(
        &client,
        &format!("https://site.example:{}/", address.port()),
    )
    .await
    .unwrap_err();
    assert_eq!(failure.code(), "tls", "{failure}");
}
