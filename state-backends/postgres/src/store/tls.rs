//! Encryption and the trust in certificates.

use interval_queue_contract::StateError;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trust {
    Anybody,
    Chain,
    ChainAndName,
}

#[cfg(feature = "tls")]
pub(super) use enabled::{Connector, connector};
#[cfg(feature = "tls")]
pub(super) const IS_ENABLED: bool = true;

#[cfg(not(feature = "tls"))]
pub(super) use tokio_postgres::NoTls as Connector;
#[cfg(not(feature = "tls"))]
pub(super) const IS_ENABLED: bool = false;

#[cfg(not(feature = "tls"))]
pub(super) fn connector(_: Trust, _: Option<&str>) -> Result<Connector, StateError> {
    Ok(Connector {})
}

#[cfg(feature = "tls")]
mod enabled {
    use std::sync::Arc;

    use interval_queue_contract::{InvalidInput, StateErrorKind};
    use rustls::{
        CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme,
        client::{
            WebPkiServerVerifier,
            danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
        },
        crypto::{CryptoProvider, ring},
        pki_types::{CertificateDer, ServerName, UnixTime, pem::PemObject},
    };

    use super::{StateError, Trust};

    pub(in crate::store) type Connector = tokio_postgres_rustls::MakeRustlsConnect;

    /// With the `rustls` provider that the process installed, or `ring`.
    pub(in crate::store) fn connector(trust: Trust, root: Option<&str>) -> Result<Connector, StateError> {
        let unusable = |error: rustls::Error| {
            StateError::new(StateErrorKind::Unsupported, "TLS cannot be set up").with_source(error)
        };
        let provider =
            CryptoProvider::get_default().cloned().unwrap_or_else(|| Arc::new(ring::default_provider()));
        let chain = match trust {
            Trust::Anybody => None,
            Trust::Chain | Trust::ChainAndName => {
                let roots = Arc::new(roots(root)?);
                let verifier = WebPkiServerVerifier::builder_with_provider(roots, provider.clone()).build();
                Some(verifier.map_err(|error| {
                    StateError::new(StateErrorKind::Invalid, "no certificates to trust were found")
                        .with_source(error)
                })?)
            }
        };
        let config = ClientConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(unusable)?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Verifier { provider, chain, trust }))
            .with_no_client_auth();
        Ok(Connector::new(config))
    }

    fn roots(file: Option<&str>) -> Result<RootCertStore, StateError> {
        let mut roots = RootCertStore::empty();
        let Some(file) = file.filter(|file| *file != "system") else {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            return Ok(roots);
        };
        let unusable = |why: String| {
            InvalidInput::new(format!("sslrootcert={file}: {why}; give a file of certificates in PEM form"))
        };
        let certificates =
            CertificateDer::pem_file_iter(file).map_err(|error| unusable(error.to_string()))?;
        for certificate in certificates {
            let certificate = certificate.map_err(|error| unusable(error.to_string()))?;
            roots.add(certificate).map_err(|error| unusable(error.to_string()))?;
        }
        if roots.is_empty() {
            return Err(unusable("it has no certificate".into()).into());
        }
        Ok(roots)
    }

    /// Checks exactly what the `sslmode` of `libpq` demands, and always the signatures of the
    /// handshake.
    #[derive(Debug)]
    struct Verifier {
        provider: Arc<CryptoProvider>,
        chain: Option<Arc<WebPkiServerVerifier>>,
        trust: Trust,
    }

    impl ServerCertVerifier for Verifier {
        fn verify_server_cert(
            &self,
            end_entity: &CertificateDer<'_>,
            intermediates: &[CertificateDer<'_>],
            server_name: &ServerName<'_>,
            ocsp_response: &[u8],
            now: UnixTime,
        ) -> Result<ServerCertVerified, rustls::Error> {
            let Some(chain) = &self.chain else { return Ok(ServerCertVerified::assertion()) };
            match chain.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now) {
                Err(rustls::Error::InvalidCertificate(
                    CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
                )) if self.trust == Trust::Chain => Ok(ServerCertVerified::assertion()),
                verified => verified,
            }
        }

        fn verify_tls12_signature(
            &self,
            message: &[u8],
            certificate: &CertificateDer<'_>,
            signature: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, rustls::Error> {
            let algorithms = &self.provider.signature_verification_algorithms;
            rustls::crypto::verify_tls12_signature(message, certificate, signature, algorithms)
        }

        fn verify_tls13_signature(
            &self,
            message: &[u8],
            certificate: &CertificateDer<'_>,
            signature: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, rustls::Error> {
            let algorithms = &self.provider.signature_verification_algorithms;
            rustls::crypto::verify_tls13_signature(message, certificate, signature, algorithms)
        }

        fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
            self.provider.signature_verification_algorithms.supported_schemes()
        }
    }
}
