//! TLS to PostgreSQL: what is verified of the server, and the certificate of the
//! client.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use tokio_postgres_rustls::MakeRustlsConnect;

/// What `sslmode` asks for.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verification {
    /// No TLS.
    Disabled,
    /// TLS where the server has it; nothing is verified.
    #[default]
    Preferred,
    /// TLS always; nothing is verified.
    None,
    /// The certificate is signed by a trusted authority.
    Authority,
    /// And it is for this host.
    Full,
}

/// The parameters of TLS in an address.
#[derive(Debug, Default)]
pub(super) struct TlsParameters {
    pub(super) verification: Verification,
    pub(super) root: Option<String>,
    pub(super) certificate: Option<String>,
    pub(super) key: Option<String>,
}

pub(super) fn connector(parameters: &TlsParameters) -> Result<MakeRustlsConnect, String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = Verifier {
        roots: roots(parameters)?,
        is_for_this_host: parameters.verification == Verification::Full,
        provider: Arc::clone(&provider),
    };
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier));
    let config = match (&parameters.certificate, &parameters.key) {
        (None, None) => builder.with_no_client_auth(),
        (Some(certificate), Some(key)) => {
            let chain = certificates("sslcert", certificate)?;
            let secret = PrivateKeyDer::from_pem_file(key)
                .map_err(|error| format!("sslkey {key} can't be read: {error}"))?;
            builder
                .with_client_auth_cert(chain, secret)
                .map_err(|error| format!("sslcert and sslkey can't be used: {error}"))?
        }
        _ => return Err("sslcert and sslkey belong together".to_owned()),
    };
    Ok(MakeRustlsConnect::new(config))
}

/// The authorities to trust, if the certificate is verified at all.
fn roots(parameters: &TlsParameters) -> Result<Option<RootCertStore>, String> {
    let is_verified = matches!(
        parameters.verification,
        Verification::Authority | Verification::Full
    );
    if !is_verified {
        return Ok(None);
    }
    let mut roots = RootCertStore::empty();
    match parameters.root.as_deref() {
        Some("system") => roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned()),
        Some(path) => {
            for certificate in certificates("sslrootcert", path)? {
                roots
                    .add(certificate)
                    .map_err(|error| format!("sslrootcert {path} can't be used: {error}"))?;
            }
        }
        None => {
            return Err(
                "this sslmode needs sslrootcert=FILE with the certificate of the authority, \
                 or sslrootcert=system for the public ones"
                    .to_owned(),
            );
        }
    }
    Ok(Some(roots))
}

fn certificates(parameter: &str, path: &str) -> Result<Vec<CertificateDer<'static>>, String> {
    let unreadable = |error| format!("{parameter} {path} can't be read: {error}");
    let found: Vec<_> = CertificateDer::pem_file_iter(path)
        .map_err(unreadable)?
        .collect::<Result<_, _>>()
        .map_err(unreadable)?;
    match found.is_empty() {
        true => Err(format!("{parameter} {path} has no certificate in PEM")),
        false => Ok(found),
    }
}

/// Verifies as much as was asked for. Signatures of the handshake are always
/// verified, so the server has the key of the certificate that it shows.
#[derive(Debug)]
struct Verifier {
    roots: Option<RootCertStore>,
    is_for_this_host: bool,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let Some(roots) = &self.roots else {
            return Ok(ServerCertVerified::assertion());
        };
        let certificate = ParsedCertificate::try_from(end_entity)?;
        verify_server_cert_signed_by_trust_anchor(
            &certificate,
            roots,
            intermediates,
            now,
            self.provider.signature_verification_algorithms.all,
        )?;
        if self.is_for_this_host {
            verify_server_name(&certificate, server_name)?;
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}
