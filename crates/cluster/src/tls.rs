//! TLS for connections to PostgreSQL. The NATS client has its own, but does not say what is wrong
//! with the file of authorities.

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use std::path::Path;
use std::sync::Arc;
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::connect::Secrets;
use crate::error::{Error, Result};

/// Reads the certificates of authorities from a file. It must have at least one.
pub(crate) fn authorities(path: &Path) -> Result<RootCertStore> {
    let unusable = |error: &dyn std::fmt::Display| {
        let path = path.display();
        Error::Usage(format!(
            "the certificates in {path} cannot be used: {error}"
        ))
    };
    let mut known = RootCertStore::empty();
    let all = CertificateDer::pem_file_iter(path).map_err(|error| unusable(&error))?;
    for certificate in all {
        let certificate = certificate.map_err(|error| unusable(&error))?;
        known.add(certificate).map_err(|error| unusable(&error))?;
    }
    match known.is_empty() {
        true => Err(unusable(&"there is none")),
        false => Ok(known),
    }
}

/// Creates a connector that accepts a server whose certificate is signed by the given authorities,
/// or by those of the machine if none are given.
pub(crate) fn connector(secrets: &Secrets) -> Result<MakeRustlsConnect> {
    let known = match &secrets.authorities {
        Some(path) => authorities(path)?,
        None => {
            let mut known = RootCertStore::empty();
            known.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            known
        }
    };
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider);
    let config = config.with_safe_default_protocol_versions();
    let config = config.map_err(Error::broker)?;
    let config = config.with_root_certificates(known).with_no_client_auth();
    Ok(MakeRustlsConnect::new(config))
}
