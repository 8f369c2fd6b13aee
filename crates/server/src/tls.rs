//! TLS of the server: reads the certificate and its key, which must belong together.

use std::path::PathBuf;
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use thiserror::Error;

/// The files of `server.tls_cert` and `server.tls_key`.
#[derive(Debug, Clone)]
pub struct TlsFiles {
    /// The certificate of the server, then those between it and its authority.
    pub cert: PathBuf,
    pub key: PathBuf,
}

/// Why the server can't have TLS with these files.
#[derive(Debug, Error)]
pub enum TlsError {
    #[error("cannot read server.tls_cert {}: {why}; it must be a PEM file with a certificate", path.display())]
    Certificate { path: PathBuf, why: String },
    #[error("cannot read server.tls_key {}: {why}; it must be a PEM file with a private key", path.display())]
    Key { path: PathBuf, why: String },
    #[error(
        "server.tls_key {} is not the key of server.tls_cert {}: {why}",
        files.key.display(), files.cert.display()
    )]
    Pair { files: TlsFiles, why: rustls::Error },
}

impl TlsFiles {
    /// Whether the server can use them.
    pub fn check(&self) -> Result<(), TlsError> {
        self.load().map(drop)
    }

    pub(crate) fn load(&self) -> Result<Arc<ServerConfig>, TlsError> {
        let failed = |why: String| TlsError::Certificate {
            path: self.cert.clone(),
            why,
        };
        let certificates: Vec<_> = CertificateDer::pem_file_iter(&self.cert)
            .and_then(Iterator::collect)
            .map_err(|error| failed(error.to_string()))?;
        if certificates.is_empty() {
            return Err(failed("no certificate found".to_owned()));
        }
        let key = PrivateKeyDer::from_pem_file(&self.key).map_err(|error| TlsError::Key {
            path: self.key.clone(),
            why: error.to_string(),
        })?;
        let mismatch = |why| TlsError::Pair {
            files: self.clone(),
            why,
        };
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(mismatch)?
            .with_no_client_auth()
            .with_single_cert(certificates, key)
            .map_err(mismatch)?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }
}
